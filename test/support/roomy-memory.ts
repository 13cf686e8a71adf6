/**
 * Where a test's servers keep their data: in memory, so that suites do not wait for one disk. A process that is killed loses nothing there
 * that it would keep on a disk; nothing here cuts the power.
 */
import { statfs } from "node:fs/promises";
import { tmpdir } from "node:os";

const MEMORY_BYTES_MIN = 2 * 1024 ** 3;

export async function roomyMemory(): Promise<string> {
  const memory = await statfs("/dev/shm").catch(() => undefined);
  return memory && memory.bavail * memory.bsize > MEMORY_BYTES_MIN ? "/dev/shm" : tmpdir();
}
