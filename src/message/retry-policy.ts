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

/** The same as code declares it: by the name of a policy that there is. */
export interface DeclaredRetry extends Omit<RetryConfig, "policy"> {
  /** Absent: `exponential`. */
  readonly policy?: RetryPolicyName | undefined;
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

type Numbers = Omit<RetryPolicy, "name">;

const exponential = (attemptsMax: number, baseMs: number, maxMs: number): Numbers => ({
  attemptsMax,
  baseMs,
  maxMs,
  jitter: "equal",
  tableMs: null,
});

const table = (tableMs: readonly number[]): Numbers => ({
  attemptsMax: tableMs.length,
  baseMs: tableMs[0] ?? DEFAULTS.retryBaseMs,
  maxMs: Math.max(...tableMs),
  jitter: "equal",
  tableMs,
});

const POLICIES = {
  exponential: exponential(DEFAULTS.attemptsMax, DEFAULTS.retryBaseMs, DEFAULTS.retryMaxMs),
  table: table([1_000, 5_000, 30_000, 5 * MINUTE]),
  settlement: table([1 * MINUTE, 2 * MINUTE, 4 * MINUTE, 8 * MINUTE, 10 * MINUTE]),
  // AUD-19: six attempts, the last of them 24 hours after the fifth and 29 h 21 min after the record was queued.
  audit: { ...table([1 * MINUTE, 5 * MINUTE, 15 * MINUTE, 1 * HOUR, 4 * HOUR, 24 * HOUR]), waitsFirst: true },
  usage: exponential(DEFAULTS.attemptsMax, 1_000, 300_000),
  "recovery-reclaim": exponential(3, 1 * MINUTE, 24 * HOUR),
  "recovery-outbox": exponential(5, 30_000, 1 * HOUR),
} as const satisfies Record<string, Numbers>;

export type RetryPolicyName = keyof typeof POLICIES;

export const RETRY_POLICIES: ReadonlyMap<string, RetryPolicy> = new Map(
  Object.entries(POLICIES).map(([name, numbers]) => [name, { name, ...numbers }]),
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
