/**
 * Who a process is, beyond its pid: pids are used again, so a pid is believed only together with the process' start time and
 * the place (machine, boot, pid namespace) where that pid means something. The identity is written as a file name, so that
 * removing the file of a dead process can never remove the file of a live one.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile, readlink } from "node:fs/promises";
import { hostname } from "node:os";
import { promisify } from "node:util";

export interface ProcessIdentity {
  readonly pid: number;
  readonly start: string;
  readonly place: string;
}

const NAME = /^(\d+)-(\d+)-([0-9a-f]{8})(?:-\d+)?$/;
let herePromise: Promise<string> | undefined;

/** The place whose pids this process can see. Two containers on one volume have the same boot and different namespaces. */
export function here(): Promise<string> {
  herePromise ??= (async () => {
    const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => hostname());
    const namespace = await readlink("/proc/self/ns/pid").catch(() => "");
    return createHash("sha256").update(`${boot.trim()} ${namespace}`).digest("hex").slice(0, 8);
  })();
  return herePromise;
}

/** Undefined when no such process runs here. A zombie does not run: it only waits to be collected. */
export async function identify(pid: number): Promise<ProcessIdentity | undefined> {
  const start = process.platform === "linux" ? await startFromProc(pid) : await startFromPs(pid);
  return start === undefined ? undefined : { pid, start, place: await here() };
}

export async function isRunning(identity: ProcessIdentity): Promise<boolean> {
  return (await identify(identity.pid))?.start === identity.start;
}

export async function myIdentity(): Promise<ProcessIdentity> {
  return (await identify(process.pid)) ?? { pid: process.pid, start: "0", place: await here() };
}

export function identityName(identity: ProcessIdentity): string {
  return `${identity.pid}-${identity.start}-${identity.place}`;
}

/** Reads a name back; a trailing counter (several servers in one process) is allowed. */
export function parseIdentity(name: string): ProcessIdentity | undefined {
  const match = NAME.exec(name);
  return match ? { pid: Number(match[1]), start: match[2]!, place: match[3]! } : undefined;
}

async function startFromProc(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (["ENOENT", "ESRCH", "EACCES"].includes(error.code ?? "")) return null;
    throw error;
  });
  if (text === null) return undefined;
  // The program's name may hold spaces and brackets: the fields are counted from behind it.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
}

async function startFromPs(pid: number): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)("ps", ["-o", "state=,lstart=", "-p", String(pid)], { env: { LC_ALL: "C" } });
    const [state, ...started] = stdout.trim().split(/\s+/);
    return state === undefined || state.startsWith("Z") ? undefined : String(Date.parse(started.join(" ")) || 0);
  } catch {
    return undefined; // ps answers 1 when there is no such process
  }
}
