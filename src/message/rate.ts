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

/** The name of a bucket within its topic: the topic's own is empty. */
export function bucketOf(tenantId: string | null | undefined): string {
  if (tenantId === undefined) return "";
  return tenantId === null ? "n" : `t${tenantId}`;
}

/** After this long without use every bucket is full, whatever its rate: it need not be kept. */
export const BUCKET_KEPT_MS = 3_600_000;
