/**
 * How long to wait after failures in a row: the one formula for everything that tries again by itself. A topic's retry policy is
 * its users' own and lives in `message/retry-policy.ts`.
 */
import type { Random } from "./random.ts";

export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Doubles with each failure, from `firstMs` to `maxMs`. */
export function backoffMs({ firstMs, maxMs }: Backoff, failures: number): number {
  // A larger exponent would only overflow.
  return Math.min(maxMs, firstMs * 2 ** Math.min(Math.max(0, failures - 1), 50));
}

/** Between half of it and all: processes that failed together do not come back together. */
export function jittered(ms: number, random: Random): number {
  return ms * (0.5 + random.next() / 2);
}
