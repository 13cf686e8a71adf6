/**
 * What a topic binds together: sink, retry, limits, ordering. Plain data, the same in every store, in the config file
 * and (in snake_case) over the API. Functions and schemas live in the process that declares them, never in a store.
 */
import type { Ordering } from "./message.ts";
import type { RetryConfig } from "./retry-policy.ts";

/** A topic's name as code writes it: `namespace/name`. What exactly the parts may be is checked when it is used: `isTopicName`. */
export type TopicName = `${string}/${string}`;

/** A sink as it is stored. Which kinds there are and what each takes is the sink room's to say: `src/sink/kinds.ts`. */
export interface SinkConfig {
  readonly kind: string;
  readonly url?: string | undefined;
  /** One total deadline per attempt; always shorter than the lease. */
  readonly timeoutMs?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Write-only over the API. webhook: several for rotation, the newest first. */
  readonly secrets?: readonly string[] | undefined;
  /** What becomes of an attempt whose effect is unknown. */
  readonly onUnknown?: "retry" | "hold" | undefined;
  /** http: status → outcome, over the defaults; for example `{ "409": "duplicate" }`. */
  readonly statusMap?: Readonly<Record<string, "delivered" | "duplicate" | "retry" | "reject" | "unknown">> | undefined;
  /** The sink may use private addresses: it comes from the config file or from code, not from the API. */
  readonly trusted?: boolean | undefined;
}

export interface TopicDefinition {
  /** `namespace/name`. */
  readonly name: string;
  readonly sink: SinkConfig;
  readonly retry: RetryConfig;
  readonly schemaVersion: number | null;
  readonly leaseMs: number;
  /** How many attempts at once in one process; null: only the overall bound. */
  readonly concurrency: number | null;
  /** How many at once for one tenant in one process; null: half of what the topic has while others wait. */
  readonly tenantConcurrency: number | null;
  /** How many attempts are begun in a second over all workers, `burstOf` it at once; absent: as many as can be. */
  readonly ratePerSecond?: number | undefined;
  /** Likewise for one tenant of the topic. */
  readonly tenantRatePerSecond?: number | undefined;
  /** How many attempts at once over all processes; absent: as many as there are places for. */
  readonly concurrencyTotal?: number | undefined;
  readonly ordering: Ordering;
  /** Which field of the payload is an amount that conservation sums, its members joined by dots: `amount_micro`, `turn.cost`; absent: none. */
  readonly moneyField?: string | undefined;
  /** Where the recovery engine brings a dead letter instead, when a person chooses so; absent: nowhere. */
  readonly fallback?: SinkConfig | undefined;
  /** What the recovery engine calls to undo the effect of a dead letter; absent: nothing does. */
  readonly compensation?: SinkConfig | undefined;
}

/** The sinks of a topic beside its own; each delivers from a topic of the recovery engine's. */
export const CARRIERS = ["fallback", "compensation"] as const;
export type Carrier = (typeof CARRIERS)[number];

const CREDENTIAL = /auth|cookie|token|secret|passw|api-?key|signature|credential/i;

/** Whether the value of a header with this name is hardly for everybody's eyes. */
export const holdsCredential = (header: string): boolean => CREDENTIAL.test(header);

export type TopicSource = "api" | "file" | "code";

export interface BreakerState {
  readonly state: "closed" | "open" | "half_open";
  /** Milliseconds until an open breaker may be probed, by the store's clock; 0 when it may be now. */
  readonly probeInMs: number;
  /** How often it opened, or let a message that failed before be tried, without closing in between: the rest between those grows with it. */
  readonly trips: number;
  readonly reason: string | null;
  /** Tenants that are held alone while the others go on; none while the whole topic is held. */
  readonly tenants: readonly HeldTenant[];
}

export interface HeldTenant {
  readonly tenantId: string;
  readonly reason: string;
}

export const BREAKER_CLOSED: BreakerState = Object.freeze({ state: "closed", probeInMs: 0, trips: 0, reason: null, tenants: [] });

/** A topic as all workers see it. */
export interface TopicRecord extends TopicDefinition {
  readonly source: TopicSource;
  readonly revision: number;
  readonly paused: boolean;
  /** Set when the sink asked for no more; cleared by the next put or resume. */
  readonly disabledReason: string | null;
  readonly breaker: BreakerState;
}
