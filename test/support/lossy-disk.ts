/**
 * A disk that forgets what was not synced when the power goes (native/lossy-disk.c), mounted by FUSE for one test. Whatever writes there has to be
 * ended before the cut, as a machine that stops ends everything.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { access, chmod, constants, mkdir, mkdtemp, rmdir, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { atEnd } from "./at-end.ts";
import { compiled } from "./compiled.ts";
import { findTool } from "./find-tool.mjs";

export interface LossyDisk {
  readonly path: string;
  /** What is there now was there before the machine was switched on: it is on the disk. */
  settle(): Promise<void>;
  /** With 0 everything unsynced is gone; another seed chooses pages and folders that had been written all the same. */
  cutPower(seed: number): Promise<void>;
}

const run = promisify(execFile);
const asRoot = (): boolean => process.geteuid?.() === 0;
const mounted = new Map<string, ChildProcess>();

atEnd(async () => {
  for (const [path, child] of mounted) {
    mounted.delete(path);
    // Lazily: a process that a failed test left behind must not keep it.
    await (asRoot() ? run("umount", ["-l", path]) : run("fusermount3", ["-uz", path])).catch(() => {});
    child.kill("SIGKILL");
    await rmdir(path);
  }
});

/** `strict`: as little is kept as POSIX allows, also of names. PostgreSQL counts on more, which the file systems of Linux give. */
export async function lossyDisk({ strict = false } = {}): Promise<LossyDisk> {
  const need = "the tests of power loss need it";
  const header = "/usr/include/fuse3/fuse_lowlevel.h";
  await findTool({ files: [header], packages: ["libfuse3-dev"], need });
  if (!asRoot()) await findTool({ files: ["fusermount3"], packages: ["fuse3"], need });
  await access("/dev/fuse", constants.R_OK | constants.W_OK).catch(async () => {
    if (asRoot()) await run("mknod", ["-m", "666", "/dev/fuse", "c", "10", "229"]).catch(() => {});
    await access("/dev/fuse", constants.R_OK | constants.W_OK).catch(() => {
      throw new Error(
        `/dev/fuse cannot be used, and ${need}: load the kernel's module (modprobe fuse), or give this container the device`,
      );
    });
  });
  const flags = ["-D_FILE_OFFSET_BITS=64", `-I${dirname(header)}`, "-lfuse3"];
  const program = await compiled("lossy-disk", flags);
  const path = await mkdtemp(join(tmpdir(), "makegood-disk-"));
  const before = (await stat(path)).dev;
  // As root the servers run under another user, who must get in.
  const child = spawn(program, [...(strict ? ["strict"] : []), ...(asRoot() ? ["-o", "allow_other"] : []), path], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (text) => {
    said += String(text);
  });
  mounted.set(path, child);
  while ((await stat(path)).dev === before) {
    if (child.exitCode !== null) throw new Error(`the lossy disk could not be mounted, and ${need}: ${said}`);
    await sleep(10);
  }
  await chmod(path, 0o755);
  return {
    path,
    settle: async () => void (await run("find", [path, "-exec", "sync", "{}", "+"])),
    async cutPower(seed) {
      // The answer says that it is done; no such folder is made.
      const done = await mkdir(join(path, `.power-cut-${seed}`)).catch((error: NodeJS.ErrnoException) => error.code);
      if (done !== "ECANCELED") throw new Error(`the power was not cut: ${done}`);
    },
  };
}
