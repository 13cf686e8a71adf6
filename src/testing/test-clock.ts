/**
 * A clock to move in unit tests. The time that decides what is due, which lease has ended and which breaker may be probed stands still until
 * it is advanced; timers also run by the real time, so that a worker, a drain or a close under test never waits for a move that does not come.
 */
import { afterOthers } from "../platform/after-others.ts";
import { type Clock, systemClock, type Timer } from "../platform/clock.ts";

export interface TestClock extends Clock {
  /** Moves the time on; what falls due meanwhile runs at its own moment, in order, and what follows from it before the next. */
  advance(ms: number): Promise<void>;
}

interface Waiting {
  readonly dueMs: number;
  readonly run: () => void;
  readonly real: Timer;
}

const START_MS = Date.UTC(2026, 0, 1);

/** `startMs`: the wall clock at the start; the beginning of 2026 unless said. */
export function createTestClock({ startMs = START_MS }: { readonly startMs?: number | undefined } = {}): TestClock {
  const bornMs = systemClock.monotonicMs();
  const waiting = new Set<Waiting>();
  let movedMs = 0;
  let moving: Promise<void> = Promise.resolve();
  const monotonicMs = (): number => systemClock.monotonicMs() - bornMs + movedMs;

  async function move(ms: number): Promise<void> {
    const untilMs = movedMs + ms;
    for (;;) {
      await new Promise<void>(afterOthers);
      const next = first(waiting);
      const aheadMs = next ? next.dueMs - monotonicMs() : Number.POSITIVE_INFINITY;
      if (!next || movedMs + aheadMs > untilMs) break;
      movedMs += Math.max(0, aheadMs);
      next.real.cancel();
      waiting.delete(next);
      next.run();
    }
    movedMs = untilMs;
    await new Promise<void>(afterOthers);
  }

  return {
    wallMs: () => Math.floor(startMs + movedMs),
    monotonicMs,
    after(ms, run, background) {
      const fire = (): void => {
        waiting.delete(one);
        run();
      };
      const one: Waiting = { dueMs: monotonicMs() + ms, run, real: systemClock.after(ms, fire, background) };
      waiting.add(one);
      return {
        cancel() {
          one.real.cancel();
          waiting.delete(one);
        },
      };
    },
    advance(ms) {
      if (!(ms >= 0)) return Promise.reject(new RangeError("time only moves on: advance(ms) takes 0 or more"));
      moving = moving.then(() => move(ms));
      return moving;
    },
  };
}

function first(waiting: ReadonlySet<Waiting>): Waiting | null {
  let found: Waiting | null = null;
  for (const one of waiting) if (found === null || one.dueMs < found.dueMs) found = one;
  return found;
}
