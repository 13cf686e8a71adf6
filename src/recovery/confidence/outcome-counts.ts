/** How often an action worked. Old outcomes fade with a half-life of 30 days; this is the only place where they do. */
import { MakegoodError } from "../../message/errors.ts";

export const HALF_LIFE_MS = 30 * 24 * 60 * 60 * 1_000;

/** Successes and failures as they weigh at `at`; one execution weighs 1 when it happens and half of that after a half-life. */
export interface OutcomeCounts {
  readonly successes: number;
  readonly failures: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** Counts as they come from outside, or an error: a guess would hide what wrote anything else. */
export function outcomeCounts(successes: number, failures: number, at: number): OutcomeCounts {
  if (successes >= 0 && failures >= 0 && Number.isFinite(successes + failures) && Number.isFinite(at))
    return { successes, failures, at };
  throw new MakegoodError(
    "invariant_violated",
    `Outcomes ${successes} and ${failures} at ${at} are no counts: both must be finite and not negative. Look at what wrote them.`,
    { successes, failures, at },
  );
}

/** The same outcomes as they weigh at `at`. A time before the counts' own changes nothing: clocks differ, and weights never grow. */
export function decayed(counts: OutcomeCounts, at: number): OutcomeCounts {
  if (at <= counts.at) return outcomeCounts(counts.successes, counts.failures, counts.at);
  const share = 2 ** -((at - counts.at) / HALF_LIFE_MS);
  return outcomeCounts(counts.successes * share, counts.failures * share, at);
}

/** Both together, at the later of their times. */
export function merged(a: OutcomeCounts | undefined, b: OutcomeCounts): OutcomeCounts {
  if (a === undefined) return b;
  const at = Math.max(a.at, b.at);
  const [one, other] = [decayed(a, at), decayed(b, at)];
  return { successes: one.successes + other.successes, failures: one.failures + other.failures, at };
}

/** How many outcomes this weighs, old ones less. */
export function weightOf(counts: OutcomeCounts): number {
  return counts.successes + counts.failures;
}

/** The share of successes; 0 when there are no outcomes. */
export function successShare(counts: OutcomeCounts): number {
  const weight = weightOf(counts);
  return weight > 0 ? counts.successes / weight : 0;
}
