/**
 * What an examination of a store's server found, one thing after the other, for a person who asks whether it can be trusted with messages.
 */
import { systemClock } from "../../platform/clock.ts";

/** `fail`: messages could be lost or are not delivered. `warn`: works, but a person should know. */
export interface Examined {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail";
  readonly detail: string;
}

export function examined(name: string, good: boolean, detail: string, bad: "warn" | "fail" = "fail"): Examined {
  return { name, status: good ? "ok" : bad, detail };
}

const SKEW_WARN_MS = 1_000;
const SKEW_FAIL_MS = 60_000;

/** Ids carry our time and leases the store's: far apart, partitions and people are misled. */
export function clockSkew(theirMs: number, ourMs: number, coarseMs: number): Examined {
  const skewMs = Math.max(0, Math.abs(theirMs - ourMs) - coarseMs);
  const detail = `${Math.round(skewMs)} ms apart${skewMs > SKEW_WARN_MS ? ": synchronise both with NTP" : ""}`;
  return examined("clock", skewMs <= SKEW_WARN_MS, detail, skewMs > SKEW_FAIL_MS ? "fail" : "warn");
}

/** The skew against a clock that is asked for now: half of what asking takes is not known. */
export async function skewOf(theirTimeMs: () => Promise<number>): Promise<Examined> {
  const askedMs = systemClock.wallMs();
  const theirMs = await theirTimeMs();
  const halfMs = (systemClock.wallMs() - askedMs) / 2;
  return clockSkew(theirMs, askedMs + halfMs, halfMs);
}
