/**
 * What a rate means, the same in every store: a bucket that holds one second's worth of starts at most, or one where the rate is lower,
 * begins full and fills steadily. Over any time t at most rate × t + burst attempts begin.
 */

/** How many may begin at once after a pause. */
export function burstOf(perSecond: number): number {
  return Math.max(1, perSecond);
}

export const RATE_MIN = 0.01;
export const RATE_MAX = 100_000;

/** The name of a bucket in its topic: the topic's own is empty. */
export function bucketOf(tenantId: string | null | undefined): string {
  if (tenantId === undefined) return "";
  return tenantId === null ? "n" : `t${tenantId}`;
}

/** After this long without use every bucket is full at any rate: it need not be kept. */
export const BUCKET_KEPT_MS = 3_600_000;

/** A bucket as it stood at a moment. */
export interface Bucket {
  readonly tokens: number;
  readonly atMs: number;
}

/** A clock that was set back by more than this is a clock that was set, not a caller that is late. */
const LATE_MS = 1_000;
/** So near to a whole one that only rounding is missing. */
const NEARLY = 1e-6;

/** Takes as many as there are of `amount`, or puts some back (below 0); `nextInMs`: until there is one more. */
export function takeFrom(bucket: Bucket | undefined, perSecond: number, amount: number, nowMs: number) {
  const burst = burstOf(perSecond);
  const before = bucket ?? { tokens: burst, atMs: nowMs };
  const there = Math.min(burst, before.tokens + (Math.max(0, nowMs - before.atMs) * perSecond) / 1_000);
  const granted = amount < 0 ? amount : Math.min(amount, Math.floor(Math.max(0, there) + NEARLY));
  const tokens = Math.min(burst, there - granted);
  const atMs = nowMs < before.atMs - LATE_MS ? nowMs : Math.max(nowMs, before.atMs);
  const nextInMs = Math.max(0, ((1 - NEARLY - tokens) / perSecond) * 1_000);
  return { bucket: { tokens, atMs } satisfies Bucket, granted, nextInMs };
}
