/**
 * Whether usage reaches its receiver: degraded as soon as one usage message is a dead letter, because that is usage nobody is
 * charged for, or when the oldest waiting one is older than an hour.
 */
import { tallyOf } from "../../store/shared/tally.ts";
import type { Store } from "../../store/store.ts";

export interface UsageHealth {
  readonly status: "ok" | "degraded";
  readonly pending: number;
  readonly oldestPendingMs: number | null;
  readonly deadLetters: number;
  readonly oldestDeadLetterMs: number | null;
}

const LATE_MS = 3_600_000;

export async function usageHealth(store: Store, topic: string): Promise<UsageHealth> {
  const counts = await store.counts();
  const { count: pending, oldestMs: oldestPendingMs } = tallyOf(counts, topic, ["pending"]);
  const { count: deadLetters, oldestMs: oldestDeadLetterMs } = tallyOf(counts, topic, ["dead"]);
  const degraded = deadLetters > 0 || (oldestPendingMs ?? 0) > LATE_MS;
  return { status: degraded ? "degraded" : "ok", pending, oldestPendingMs, deadLetters, oldestDeadLetterMs };
}
