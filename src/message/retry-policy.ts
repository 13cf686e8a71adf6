/**
 * Named retry policies: how long to wait after (or before) attempt n, and how many attempts there are. Pure: randomness
 * is passed in. The seeds' tables are entries of this one registry; anything else is `exponential` or `table` with numbers.
 */
import { DEFAULTS } from "./limits.ts";

export interface RetryConfig {
  readonly policy: string;
  readonly attemptsMax?: number | undefined;
  readonly baseMs?: number | undefined;
  readonly maxMs?: number | undefined;
  /** `equal`: between half the delay and the delay. `none`: the delay itself. */
  readonly jitter?: "equal" | "none" | undefined;
  readonly tableMs?: readonly number[] | undefined;
}

/** A policy with every number filled in. */
export interface RetryPolicy {
  readonly name: string;
  readonly attemptsMax: number;
  readonly baseMs: number;
  readonly maxMs: number;
  readonly jitter: "equal" | "none";
  /** Null: exponential from `baseMs`, doubling, capped at `maxMs`. */
  readonly tableMs: readonly number[] | null;
  /** True: wait n always stands before attempt n, also of a message that nobody has tried before. */
  readonly waitsFirst?: boolean | undefined;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const exponential = (name: string, attemptsMax: number, baseMs: number, maxMs: number): RetryPolicy => ({
  name,
  attemptsMax,
  baseMs,
  maxMs,
  jitter: "equal",
  tableMs: null,
});

const table = (name: string, tableMs: readonly number[]): RetryPolicy => ({
  name,
  attemptsMax: tableMs.length,
  baseMs: tableMs[0] ?? DEFAULTS.retryBaseMs,
  maxMs: Math.max(...tableMs),
  jitter: "equal",
  tableMs,
});

export const RETRY_POLICIES: ReadonlyMap<string, RetryPolicy> = new Map(
  [
    exponential("exponential", DEFAULTS.attemptsMax, DEFAULTS.retryBaseMs, DEFAULTS.retryMaxMs),
    table("table", [1_000, 5_000, 30_000, 5 * MINUTE]),
    table("settlement", [1 * MINUTE, 2 * MINUTE, 4 * MINUTE, 8 * MINUTE, 10 * MINUTE]),
    // AUD-19: six attempts, the last of them 24 hours after the fifth and 29 h 21 min after the record was queued.
    { ...table("audit", [1 * MINUTE, 5 * MINUTE, 15 * MINUTE, 1 * HOUR, 4 * HOUR, 24 * HOUR]), waitsFirst: true },
    exponential("usage", DEFAULTS.attemptsMax, 1_000, 300_000),
    exponential("recovery-reclaim", 3, 1 * MINUTE, 24 * HOUR),
    exponential("recovery-outbox", 5, 30_000, 1 * HOUR),
  ].map((policy) => [policy.name, policy]),
);

/** Fills a topic's retry settings in from the policy it names; undefined when nobody registered that name. */
export function retryPolicy(config: RetryConfig): RetryPolicy | undefined {
  const named = RETRY_POLICIES.get(config.policy);
  if (!named) return undefined;
  const tableMs = config.tableMs ?? named.tableMs;
  return {
    name: named.name,
    attemptsMax: config.attemptsMax ?? (config.tableMs ? config.tableMs.length : named.attemptsMax),
    baseMs: config.baseMs ?? named.baseMs,
    maxMs: config.maxMs ?? (config.tableMs ? Math.max(...config.tableMs) : named.maxMs),
    jitter: config.jitter ?? named.jitter,
    tableMs,
    waitsFirst: named.waitsFirst,
  };
}

/**
 * The wait around attempt `n` (from 1). An enqueued message waits `delay(n)` after failed attempt n; one handed down by
 * `deliver()` waits `delay(n)` before attempt n, because its direct try already was the attempt that failed first; so does
 * every message of a policy that waits first.
 */
export function retryDelayMs(policy: RetryPolicy, n: number, random: number): number {
  const step = Math.max(1, n);
  const raw = policy.tableMs
    ? (policy.tableMs[Math.min(step, policy.tableMs.length) - 1] ?? policy.baseMs)
    : policy.baseMs * 2 ** Math.min(step - 1, 50);
  const delay = Math.min(raw, policy.maxMs);
  return Math.round(policy.jitter === "equal" ? delay / 2 + (delay / 2) * random : delay);
}
