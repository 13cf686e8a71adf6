/**
 * How often an action worked, as two numbers and a time: what a store keeps per fingerprint and action, per topic and action, and
 * per action. Old outcomes fade with a half-life of 30 days; what was counted in parts can be added up in any order.
 */
import { MakegoodError } from "../../message/errors.ts";

export const HALF_LIFE_MS = 30 * 24 * 60 * 60 * 1_000;

/** Successes and failures as they weigh at `at`; one outcome weighs 1 when it happens and half of that after a half-life. */
export interface OutcomeCounts {
  readonly successes: number;
  readonly failures: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** What became of one message that an action touched; a reverted action counts as a failure. */
export type ActionResult = "healed" | "failed";

/** Counts as they come from outside, or an error: a store that gives anything else is broken, and a guess would hide it. */
export function outcomeCounts(successes: number, failures: number, at: number): OutcomeCounts {
  const counts = { successes, failures, at };
  check(counts);
  return counts;
}

function check(counts: OutcomeCounts): void {
  const { successes, failures, at } = counts;
  if (successes >= 0 && failures >= 0 && Number.isFinite(successes + failures) && Number.isFinite(at)) return;
  throw new MakegoodError(
    "invariant_violated",
    `Outcomes ${successes} and ${failures} at ${at} are no counts: both must be finite and not negative. Look at what wrote them.`,
    { successes, failures, at },
  );
}

/** The same outcomes as they weigh at `at`. A time before the counts' own changes nothing: clocks differ, and weights never grow. */
export function decayed(counts: OutcomeCounts, at: number): OutcomeCounts {
  check(counts);
  if (at <= counts.at) return counts;
  const share = 2 ** -((at - counts.at) / HALF_LIFE_MS);
  return { successes: counts.successes * share, failures: counts.failures * share, at };
}

/** Both together, at the later of their times. */
export function merged(a: OutcomeCounts, b: OutcomeCounts): OutcomeCounts {
  const at = Math.max(a.at, b.at);
  const [one, other] = [decayed(a, at), decayed(b, at)];
  return { successes: one.successes + other.successes, failures: one.failures + other.failures, at };
}

/** One more outcome. One that is reported late weighs what it weighs by now. */
export function counted(counts: OutcomeCounts | undefined, result: ActionResult, at: number): OutcomeCounts {
  const one = { successes: result === "healed" ? 1 : 0, failures: result === "healed" ? 0 : 1, at };
  return counts === undefined ? one : merged(counts, one);
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
