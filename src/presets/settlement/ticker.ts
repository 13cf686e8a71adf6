/**
 * The timer of the replays: one tick at a time, spread out so that several instances do not come at the same moment (DF-23), and
 * never the reason why a process stays alive (EV-13).
 */
import type { Clock, Timer } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";

export function createTicker(
  clock: Clock,
  random: Random,
  run: () => Promise<unknown>,
): { start(everyMs: number): void; stop(): void } {
  let timer: Timer | null = null;
  let running = false;
  const next = (everyMs: number): void => {
    const waitMs = everyMs / 2 + (everyMs / 2) * random.next();
    timer = clock.after(waitMs, () => void run().then(() => (running ? next(everyMs) : undefined)), true);
  };
  return {
    start(everyMs) {
      if (running) return;
      running = true;
      next(everyMs);
    },
    stop() {
      running = false;
      timer?.cancel();
    },
  };
}
