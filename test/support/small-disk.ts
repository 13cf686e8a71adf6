/** A file system of a few megabytes in memory, to be filled to the last page. Mounting needs root; without it one line says so. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { atEnd } from "./at-end.ts";

const run = promisify(execFile);
const mounted: string[] = [];
atEnd(async () => {
  for (const path of mounted.splice(0)) {
    await run("umount", ["-l", path]);
    await rmdir(path);
  }
});

export async function smallDisk(megabytes: number): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "makegood-small-"));
  await run("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=755`, "tmpfs", path]).catch((error: Error) => {
    throw new Error(
      `a small file system cannot be mounted, and the test of a full disk needs it: run it as root (${error.message})`,
    );
  });
  mounted.push(path);
  return path;
}

/** Takes all the room that is left, to the last page. */
export async function fill(path: string, name = "filler"): Promise<() => Promise<void>> {
  const file = join(path, name);
  await writeFile(file, "");
  await run("dd", ["if=/dev/zero", `of=${file}`, "bs=4096", "oflag=append", "conv=notrunc"]).catch(() => undefined);
  return () => rm(file);
}
