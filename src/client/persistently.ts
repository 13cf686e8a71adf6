/**
 * A write whose outcome may be in doubt, tried again a few times: the caller makes it one that a repeat recognises. Inside the caller's own
 * transaction nothing is tried twice, because a failed statement has already undone it.
 */
import { isMakegoodError } from "../message/errors.ts";
import { backoffMs, jittered } from "../platform/backoff.ts";
import { type Clock, sleep } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";

export interface PersistOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** True: once only. */
  readonly once?: boolean | undefined;
  /** Ends a wait; what was under way is not cut short. */
  readonly signal?: AbortSignal | undefined;
  /** Claimed before each repeat; false: no more of them. */
  readonly again?: ((error: unknown, failed: number) => boolean) | undefined;
}

const TRIES_MAX = 6;
const WAIT = { firstMs: 50, maxMs: 5_000 };

/** `call` gets the number of tries that have failed before. */
export async function persistently<T>(options: PersistOptions, call: (failed: number) => Promise<T>): Promise<T> {
  const { clock, random, once = false, signal, again } = options;
  for (let failed = 0; ; failed++) {
    try {
      return await call(failed);
    } catch (error) {
      if (once || !isInDoubt(error) || failed + 1 >= TRIES_MAX || again?.(error, failed + 1) === false) throw error;
      await sleep(clock, jittered(backoffMs(WAIT, failed + 1), random), signal);
    }
  }
}

/** It did not happen, or nobody knows whether it did; nothing says that it never will. */
export function isInDoubt(error: unknown): boolean {
  if (!isMakegoodError(error)) return false;
  return error.code === "outcome_unknown" || error.code === "store_unavailable" || error.code === "retry_transaction";
}
