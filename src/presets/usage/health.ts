/**
 * Whether usage reaches its receiver (EV-40): degraded as soon as one usage message is a dead letter, because that is usage nobody is
 * charged for, or when the oldest waiting one is older than an hour.
 */
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
  const counts = (await store.counts()).filter((count) => count.topic === topic);
  const waiting = counts.filter(({ status }) => status === "pending");
  const dead = counts.filter(({ status, resolution }) => status === "dead" && resolution === "open");
  const sum = (of: typeof counts): number => of.reduce((total, { count }) => total + count, 0);
  const oldest = (of: typeof counts): number | null =>
    of.reduce<number | null>((age, { oldestMs }) => (oldestMs === null ? age : Math.max(age ?? 0, oldestMs)), null);
  const [pending, deadLetters, oldestPendingMs] = [sum(waiting), sum(dead), oldest(waiting)];
  const degraded = deadLetters > 0 || (oldestPendingMs ?? 0) > LATE_MS;
  return { status: degraded ? "degraded" : "ok", pending, oldestPendingMs, deadLetters, oldestDeadLetterMs: oldest(dead) };
}
