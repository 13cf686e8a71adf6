/**
 * Finds the server that runs on a data directory, ours or an orphan, by what PostgreSQL writes to postmaster.pid. The pid in
 * it is believed only if that process is a postgres working in this directory. A file whose pid now belongs to another program
 * is stale; PostgreSQL would refuse to start beside it, so it is changed into one that PostgreSQL takes over by itself.
 */
import { execFile } from "node:child_process";
import { chown, readdir, readFile, stat, unlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { type Clock, sleep } from "../../../platform/clock.ts";
import { identify, type ProcessIdentity } from "../../../platform/process-identity.ts";
import type { DataDirectory } from "./data-directory.ts";
import { unless } from "./failure.ts";
import { writeWhole } from "./write-whole.ts";

export interface FoundServer {
  readonly identity: ProcessIdentity;
  /** Undefined in the first moments: PostgreSQL writes it once it listens. */
  readonly port: number | undefined;
  readonly status: "starting" | "ready" | "stopping";
}

/** A file that stays empty this long was left by a crash between making and writing it. */
const EMPTY_MS_MAX = 2_000;

export async function findServer({ pgdata }: DataDirectory): Promise<FoundServer | undefined> {
  const lines = await readPidFile(pgdata);
  const pid = pidOf(lines);
  const identity = pid === undefined ? undefined : await identify(pid);
  if (!lines || !identity || !(await worksIn(identity.pid, pgdata))) return undefined;
  return { identity, port: Number(lines[3]) || undefined, status: statusOf(lines) };
}

/**
 * Changes a stale file that PostgreSQL would not take over by itself. Only under the lock, before a server is started: beside
 * one that is starting, its own file could be overwritten.
 *
 * Our own pid is put in place of the stale one: PostgreSQL knows that the pid of its parent cannot be another server's. The
 * rest of the file stays, because from it PostgreSQL checks that no process of the old server still uses its shared memory.
 */
export async function takeOverStale(directory: DataDirectory, clock: Clock, log: (message: string) => void): Promise<void> {
  const path = join(directory.pgdata, "postmaster.pid");
  const startedMs = clock.monotonicMs();
  let lines = await readPidFile(directory.pgdata);
  while (lines && pidOf(lines) === undefined && clock.monotonicMs() - startedMs < EMPTY_MS_MAX) {
    await sleep(clock, 50);
    lines = await readPidFile(directory.pgdata);
  }
  if (!lines) return;
  const pid = pidOf(lines);
  if (pid === undefined) {
    log(`removing an empty ${path}, left by a crash`);
    await unless(["ENOENT"], unlink(path));
  } else if (exists(pid) && pid !== process.pid && !(await worksIn(pid, directory.pgdata))) {
    log(`${path} names process ${pid}, which is another program now; taking it over`);
    const { uid, gid } = await stat(path);
    await writeWhole(path, [String(process.pid), ...lines.slice(1)].join("\n"), (file) => chown(file, uid, gid));
  }
}

async function readPidFile(pgdata: string): Promise<readonly string[] | undefined> {
  return (await unless(["ENOENT", "ENOTDIR"], readFile(join(pgdata, "postmaster.pid"), "utf8")))?.split("\n");
}

/** Undefined while the file is empty: it was made and not yet written. A negative pid is a single-user server. */
function pidOf(lines: readonly string[] | undefined): number | undefined {
  const pid = Math.abs(Number(lines?.[0] || Number.NaN));
  return Number.isInteger(pid) && pid > 0 ? pid : undefined;
}

/** As PostgreSQL looks at it: a zombie exists, a process of another user does not count. */
function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function statusOf(lines: readonly string[]): FoundServer["status"] {
  const word = lines[7]?.trim();
  if (word === "ready" || word === "stopping") return word;
  return "starting";
}

/** Backends that outlived their postmaster: they hold its shared memory, so no new server can start. Linux only. */
export async function findOrphans(pgdata: string): Promise<readonly number[]> {
  const orphans: number[] = [];
  for (const entry of (await unless(["ENOENT"], readdir("/proc"))) ?? []) {
    const pid = Number(entry);
    if (Number.isInteger(pid) && pid !== process.pid && (await worksIn(pid, pgdata))) orphans.push(pid);
  }
  return orphans;
}

/** Is it a postgres, and of this directory? PostgreSQL works inside its data directory, so its cwd is that folder. */
async function worksIn(pid: number, pgdata: string): Promise<boolean> {
  const command = await commandOf(pid);
  if (command === undefined) return false;
  // The postmaster keeps its arguments; its children call themselves "postgres: what they do".
  const program = basename(command.split(/[\0 ]/)[0] ?? "").replace(/:$/, "");
  if (program !== "postgres") return false;
  if (process.platform !== "linux") return command.includes(pgdata);
  // Compared by inode, not by name: a bind mount gives one folder two names, and a copied directory two folders one name.
  const [cwd, data] = await Promise.all([stat(`/proc/${pid}/cwd`).catch(() => undefined), stat(pgdata)]);
  return cwd === undefined ? command.includes(pgdata) : cwd.ino === data.ino && cwd.dev === data.dev;
}

async function commandOf(pid: number): Promise<string | undefined> {
  if (process.platform === "linux") return readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => undefined);
  try {
    return (await promisify(execFile)("ps", ["-o", "command=", "-p", String(pid)])).stdout.trim();
  } catch {
    return undefined;
  }
}
