/**
 * Files that say "this process is here": the holder of the lock, the processes attached to a server. A process in this place
 * is judged by its identity; one elsewhere (another container on the same volume) by whether its file is still being touched,
 * because its pid means nothing here and two servers on one directory would destroy it.
 */
import { stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../../platform/clock.ts";
import { type Loop, startLoop } from "../../../platform/loop.ts";
import { here, isRunning, parseIdentity } from "../../../platform/process-identity.ts";
import { unless } from "./failure.ts";

export const TOUCH_EVERY_MS = 2_000;
/** Three touches missed: the process elsewhere is gone. */
const SILENT_MS = 6_500;
/** A file this old need not be watched first. */
const LONG_SILENT_MS = 60_000;

export type Presence = "here" | "elsewhere" | "gone";

export interface Witness {
  /** Call it again until it answers "gone": silence elsewhere can only be seen by looking more than once. */
  look(directory: string, name: string): Promise<Presence>;
}

export function createWitness(clock: Clock): Witness {
  const seen = new Map<string, { mtimeMs: number; sinceMs: number }>();
  return {
    async look(directory, name) {
      const identity = parseIdentity(name);
      if (!identity) return "gone";
      if (identity.place === (await here())) return (await isRunning(identity)) ? "here" : "gone";
      const path = join(directory, name);
      const found = await unless(["ENOENT"], stat(path));
      if (!found || clock.wallMs() - found.mtimeMs > LONG_SILENT_MS) return "gone";
      const before = seen.get(path);
      if (before?.mtimeMs !== found.mtimeMs) {
        seen.set(path, { mtimeMs: found.mtimeMs, sinceMs: clock.monotonicMs() });
        return "elsewhere";
      }
      return clock.monotonicMs() - before.sinceMs > SILENT_MS ? "gone" : "elsewhere";
    },
  };
}

export async function touch(clock: Clock, path: string): Promise<void> {
  const now = clock.wallMs() / 1_000;
  await utimes(path, now, now);
}

/** Touches a file until stopped, for a holder that is busy with something else. */
export function keepTouching(clock: Clock, path: string): Loop {
  return startLoop({
    clock,
    step: async () => {
      await unless(["ENOENT"], touch(clock, path));
      return TOUCH_EVERY_MS;
    },
    failed: () => TOUCH_EVERY_MS,
  });
}
