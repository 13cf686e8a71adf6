/**
 * One thing the doctor looked at.
 */
import type { Examined } from "../../store/postgres/index.ts";

export type Finding = Examined;

export function finding(name: string, status: Finding["status"], detail: string): Finding {
  return { name, status, detail };
}

const SKEW_WARN_MS = 1_000;
const SKEW_FAIL_MS = 60_000;

/** Ids carry our time and leases the store's: far apart, partitions and people are misled. */
export function clockSkew(theirMs: number, ourMs: number, coarseMs: number): Finding {
  const skewMs = Math.max(0, Math.abs(theirMs - ourMs) - coarseMs);
  const status = skewMs > SKEW_FAIL_MS ? "fail" : skewMs > SKEW_WARN_MS ? "warn" : "ok";
  return finding("clock", status, `${Math.round(skewMs)} ms apart${status === "ok" ? "" : ": synchronise both with NTP"}`);
}
