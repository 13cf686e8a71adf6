/**
 * What a message is, at each point of its walk: as handed to a store, as claimed by a worker, as read back by a person.
 * The payload is text, always: the exact bytes that were accepted are the bytes that are delivered (I8).
 */

export const STATUSES = ["pending", "processing", "delivered", "dead"] as const;
export type Status = (typeof STATUSES)[number];
export const RESOLUTIONS = ["open", "resolved", "discarded"] as const;
export type Resolution = (typeof RESOLUTIONS)[number];
export type Ordering = "none" | "key" | "strict";

/** A message on its way into a store. The id is made by the caller before the first try, so that a retry after an unknown COMMIT is one row. */
export interface NewMessage {
  readonly id: string;
  /** `namespace/name`. */
  readonly topic: string;
  readonly tenantId: string | null;
  readonly key: string | null;
  readonly payload: string;
  /** First 16 bytes of SHA-256 of the payload, 32 lower-case hex digits: tells a repeat of the key from a conflict. Empty without a key. */
  readonly payloadHash: string;
  readonly delayMs: number;
  readonly priority: number;
  /** Null where the topic's ordering is `none`. */
  readonly orderingKey: string | null;
  readonly traceparent: string | null;
  readonly schemaVersion: number | null;
  /** A direct try that failed before the message was handed down: recorded as attempt 0. */
  readonly directTry?: DirectTry | undefined;
}

export interface DirectTry {
  readonly code: string | null;
  readonly error: string | null;
  /** The receiver refused it for good: the message is an open dead letter from the start. Only without an ordering key. */
  readonly rejected?: boolean | undefined;
}

/**
 * What became of one enqueued message. `duplicate`: the key exists with the same payload, `id` is the first one's.
 * `conflict`: the key exists with another payload, `id` is the first one's; nothing was written.
 */
export type Accepted =
  | { readonly kind: "accepted"; readonly id: string }
  | { readonly kind: "duplicate"; readonly id: string }
  | { readonly kind: "conflict"; readonly id: string };

/** The right to attempt one message: a lease with a token, both issued by the store. */
export interface Claim {
  readonly lease: string;
  readonly token: string;
}

/** How far a message is suspected of killing workers: 0 not at all, 1 claimed in small batches, 2 claimed alone. */
export type Suspicion = 0 | 1 | 2;

export interface ClaimedMessage {
  readonly id: string;
  readonly claim: Claim;
  /** The lane it came from; see store/store.ts. */
  readonly lane: string;
  readonly topic: string;
  readonly tenantId: string | null;
  readonly priority: number;
  readonly key: string | null;
  readonly orderingKey: string | null;
  readonly payload: string;
  readonly traceparent: string | null;
  readonly schemaVersion: number | null;
  /** Number of this attempt, from 1, counted at claim. */
  readonly attempt: number;
  /** Attempts that were spent before this generation began; the budget is `attempt - base`. */
  readonly base: number;
  /** Handed down by `deliver()`, so that its waits stand before attempts, not after them. */
  readonly handedDown: boolean;
  readonly suspicion: Suspicion;
  /** It failed before: without an ordering key it waited in a lane apart. Always false for suspects. */
  readonly retried: boolean;
}

/** A message as it is read back: its fixed part, and where it stands now. */
export interface MessageView {
  readonly id: string;
  readonly topic: string;
  readonly tenantId: string | null;
  readonly key: string | null;
  readonly orderingKey: string | null;
  readonly priority: number;
  readonly payload: string;
  readonly traceparent: string | null;
  readonly schemaVersion: number | null;
  readonly createdAt: Date;
  readonly status: Status;
  /** Attempts that count, over all generations. */
  readonly attempts: number;
  readonly generation: number;
  /** Raised by each intervention; an intervention may name the one it saw. */
  readonly revision: number;
  /** When it may next be attempted; null unless pending. */
  readonly nextAttemptAt: Date | null;
  /** Why a pending message is held; null when it is not. A pause or an open breaker is the topic's state and not repeated here. */
  readonly heldReason: string | null;
  readonly diedAt: Date | null;
  readonly resolution: Resolution | null;
  readonly lastError: string | null;
  readonly lastCode: string | null;
}

export type AttemptOutcome = "delivered" | "duplicate" | "retry" | "reject" | "unknown" | "lost" | "interrupted";

export interface AttemptRecord {
  readonly attempt: number;
  readonly outcome: AttemptOutcome;
  /** False for an attempt that spends no budget: interrupted by a shutdown, or lost in a batch where nobody knows who was running. */
  readonly counted: boolean;
  readonly at: Date;
  readonly durationMs: number | null;
  readonly code: string | null;
  readonly error: string | null;
  readonly nextAttemptAt: Date | null;
}

/** What people and programs may do to a message that is not in flight. */
export type InterventionAction = "replay" | "resolve" | "discard" | "cancel" | "reschedule";

/** One line of the append-only record of what people and programs did to a message. */
export interface ProvenanceRecord {
  readonly at: Date;
  readonly actor: string;
  readonly action: InterventionAction;
  readonly reason: string | null;
}
