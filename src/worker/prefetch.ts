/**
 * How many messages a worker holds: more than run at once, so that a fast sink never waits for a claim, but not many more
 * when the sink is slow, because what is held by one worker cannot be started by another and waits for its lease after a crash.
 */

const CLAIM_MAX = 1_000;
/** Two claims of the largest size may be on their way or at work. */
const HELD_MAX = 2 * CLAIM_MAX;
const FAST_MS = 50;
const SLOW_MS = 200;
/** How much more at once after a batch that was over in no time: a backlog waits while the worker still learns how fast its sink is. */
const GROWTH_MAX = 8;

export interface Prefetch {
  /** How many to hold at most. */
  readonly target: number;
  /** How many one claim may ask for: half of it, so that two overlap. */
  readonly claimMax: number;
  /** A whole batch has its outcomes, so long after it came. */
  batchDone(size: number, ms: number): void;
  /** Something has been waiting for its start for too long. */
  tooMuch(): void;
}

/** `atMost`: what is held, whatever the sink does. */
export function createPrefetch(concurrency: number, atMost = HELD_MAX): Prefetch {
  const heldMax = Math.max(atMost, concurrency);
  let target = Math.min(2 * concurrency, heldMax);
  const shrink = (): void => {
    target = Math.max(concurrency, target >> 1);
  };
  return {
    get target() {
      return target;
    },
    get claimMax() {
      return Math.min(CLAIM_MAX, Math.max(1, Math.ceil(target / 2)));
    },
    batchDone(size, ms) {
      // A small batch says how little there was to do, not how fast it goes.
      if (ms < FAST_MS && size * 4 >= target)
        target = Math.min(heldMax, target * Math.min(GROWTH_MAX, Math.max(2, Math.floor(FAST_MS / Math.max(1, ms)))));
      else if (ms > SLOW_MS) shrink();
    },
    tooMuch: shrink,
  };
}
