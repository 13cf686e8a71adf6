/**
 * Finds the server that runs on a data directory, ours or an orphan, by what PostgreSQL writes to postmaster.pid, and stops
 * it. The pid in that file is believed only if the process is a postgres working in this directory. A file whose pid now
 * belongs to another program is stale; PostgreSQL would refuse to start beside it, so it is changed into one that PostgreSQL
 * takes over by itself.
 */
import { execFile } from "node:child_process";
import { chown, readdir, readFile, stat, unlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { sleep } from "../../../platform/clock.ts";
import { identify, isRunning, type ProcessIdentity } from "../../../platform/process-identity.ts";
import { type DataDirectory, writeWhole } from "./data-directory.ts";
import { codeOf, embeddedFailed, unless } from "./failure.ts";

export interface FoundServer {
  readonly identity: ProcessIdentity;
  /** PostgreSQL says so in the file; before it is ready, and while it stops, there is nothing to connect to. */
  readonly ready: boolean;
  /** 0 in the first moments: PostgreSQL writes it once it listens. */
  readonly port: number;
}

/** A file that stays empty this long was left by a crash between making and writing it. */
const EMPTY_MS_MAX = 2_000;
const STOP_STEPS: readonly { readonly signal: NodeJS.Signals; readonly waitMs: number }[] = [
  { signal: "SIGINT", waitMs: 60_000 }, // "fast": a last checkpoint, then the end
  { signal: "SIGQUIT", waitMs: 10_000 }, // "immediate": no checkpoint
];
const STOP_POLL_MS = 15;

export async function findServer({ pgdata }: DataDirectory): Promise<FoundServer | undefined> {
  const lines = await readPidFile(pgdata);
  const pid = pidOf(lines);
  const identity = pid === undefined ? undefined : await identify(pid);
  if (!lines || !identity || !(await worksIn(identity.pid, pgdata))) return undefined;
  return { identity, port: Number(lines[3]) || 0, ready: lines[7]?.trim() === "ready" };
}

/**
 * Changes a stale file that PostgreSQL would not take over by itself. Only under the lock, before a server is started: beside
 * one that is starting, its own file could be overwritten.
 *
 * Our own pid is put in place of the stale one: PostgreSQL knows that the pid of its parent cannot be another server's. The
 * rest of the file stays, because from it PostgreSQL checks that no process of the old server still uses its shared memory.
 */
export async function takeOverStale({ pgdata, clock, log }: DataDirectory): Promise<void> {
  const path = join(pgdata, "postmaster.pid");
  const startedMs = clock.monotonicMs();
  let lines = await readPidFile(pgdata);
  while (lines && pidOf(lines) === undefined && clock.monotonicMs() - startedMs < EMPTY_MS_MAX) {
    await sleep(clock, 50);
    lines = await readPidFile(pgdata);
  }
  if (!lines) return;
  const pid = pidOf(lines);
  if (pid === undefined) {
    log(`removing an empty ${path}, left by a crash`);
    await unless(["ENOENT"], unlink(path));
  } else if (exists(pid) && pid !== process.pid && !(await worksIn(pid, pgdata))) {
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
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/**
 * Backends that outlived their postmaster: they hold its shared memory, so no new server can start. Linux only. Ending them
 * is safe: nothing they do can be committed any more, and recovery follows.
 */
export async function endOrphans({ pgdata, log }: DataDirectory, signal: NodeJS.Signals): Promise<void> {
  for (const entry of (await unless(["ENOENT"], readdir("/proc"))) ?? []) {
    const pid = Number(entry);
    if (!Number.isInteger(pid) || pid === process.pid || !(await worksIn(pid, pgdata))) continue;
    log(`ending process ${pid} of the dead server, which still holds its memory (${signal})`);
    try {
      process.kill(pid, signal);
    } catch {
      // It ended by itself meanwhile.
    }
  }
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
  const cwd = await stat(`/proc/${pid}/cwd`).catch(() => undefined);
  const data = await stat(pgdata);
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

/**
 * Stops a server in an orderly way: clients are disconnected, everything is written, and only then it is reported as stopped.
 * One that does not obey in time is told to stop at once, which loses nothing: the next start recovers from its log.
 */
export async function stopServer(server: ProcessIdentity, { clock, log }: DataDirectory): Promise<void> {
  for (const { signal, waitMs } of STOP_STEPS) {
    // The start time is looked at each time: the pid may already belong to another process.
    if (!(await isRunning(server))) return;
    try {
      process.kill(server.pid, signal);
    } catch (error) {
      if (codeOf(error) === "ESRCH") return;
      throw embeddedFailed(
        `The PostgreSQL with pid ${server.pid} could not be stopped: ${codeOf(error)}.`,
        { pid: server.pid },
        error,
      );
    }
    const deadlineMs = clock.monotonicMs() + waitMs;
    while (clock.monotonicMs() < deadlineMs) {
      if (!(await isRunning(server))) return;
      await sleep(clock, STOP_POLL_MS);
    }
    log(`PostgreSQL (pid ${server.pid}) did not stop within ${waitMs / 1_000} s of ${signal}`);
  }
  log(`PostgreSQL (pid ${server.pid}) is left running; the next start will attach to it`);
}
