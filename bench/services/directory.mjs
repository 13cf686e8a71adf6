// The run's own directory under os.tmpdir(), and the unprivileged user that PostgreSQL runs as when the run is root's.
import { chmodSync, chownSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** `nobody` exists everywhere and owns nothing. */
const nobody = { uid: 65534, gid: 65534 };
const isRoot = process.getuid?.() === 0;

/** Options of a child process that must not run as root. */
export const unprivileged = isRoot ? nobody : {};

export function giveToUnprivileged(...paths) {
  if (isRoot) for (const path of paths) chownSync(path, nobody.uid, nobody.gid);
}

const tmpfsMagic = 0x01021994;

export function makeDirectory() {
  const path = mkdtempSync(join(tmpdir(), "makegood-bench-"));
  chmodSync(path, 0o755);
  return {
    path,
    inMemory: statfsSync(path).type === tmpfsMagic,
    remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }),
  };
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Stops a server process that this run started: asks first, then insists. */
export async function stopProcess(child, signal) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const timer = setTimeout(() => child.kill("SIGKILL"), 20_000);
  child.kill(signal);
  await exited;
  clearTimeout(timer);
}
