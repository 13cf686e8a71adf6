/**
 * The wall clock of a process that a test starts, to be moved while it runs. What counts elapsed time, the monotonic clock, stays as it is, as it
 * does when a real machine's clock is set. (libfaketime does the same for most programs, but not for Redis with jemalloc.)
 */
import { chmod, open } from "node:fs/promises";
import { join } from "node:path";
import { compiled } from "./compiled.ts";
import { workspace } from "./processes.ts";

export interface MovedClock {
  /** For the process whose clock it is. */
  readonly env: Record<string, string>;
  /** From now on the clock is off by this much. */
  set(offMs: number): Promise<void>;
}

export async function movedClock(): Promise<MovedClock> {
  const library = await compiled("moved-clock", ["-shared", "-fPIC"]);
  const path = join(await workspace(), "off");
  const set = async (offMs: number): Promise<void> => {
    const file = await open(path, "r+").catch(() => open(path, "w+"));
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(offMs) * 1_000_000n);
    await file.write(bytes, 0, 8, 0);
    await file.close();
  };
  await set(0);
  await chmod(path, 0o644);
  return { env: { LD_PRELOAD: library, CLOCK_OFF: path }, set };
}
