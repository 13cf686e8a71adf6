/**
 * The usage seam: turns that reserve quota and are finalised exactly once. A member stands here for its atomicity: a reserve is one
 * turn and its quota or neither, a finalisation is the terminal state, the debit and the message or none of them (OBX-12…14).
 * What a turn is charged is decided by the caller's `settle`; ids are 32 lower-case hex digits. Every engine passes testing/usage-conformance.
 */
import type { At, Transaction } from "./store.ts";

export type TurnState = "running" | "completed" | "failed" | "cancelled";
export type TurnOutcome = "completed" | "failed" | "aborted";
/** actual: what the provider counted. estimated: a bounded guess. released: nothing was used, the reserve goes back. */
export type SettlementMethod = "actual" | "estimated" | "released";

export interface TurnRef {
  readonly tenantId: string;
  readonly turnId: string;
}

export interface Bucket {
  /** For example `total` or `tier:premium`. */
  readonly name: string;
  /** Null: no limit. */
  readonly limitCredits: bigint | null;
}

/** Everything that a later settlement or estimate needs, kept from the moment of the reserve on (EV-37) and never changed. */
export interface Reservation extends TurnRef {
  readonly requestId: string;
  /** At most one turn of a chat is running (EV-38). */
  readonly chatId: string;
  /** Null: the quota is the tenant's own. */
  readonly userId: string | null;
  readonly policyVersion: string;
  /** The model that really answers, whatever was asked for. */
  readonly model: string;
  /** Whose quota rows are reserved and later settled: the same ones, also when the turn ends in the next period. */
  readonly period: string;
  readonly estimatedInputTokens: number;
  readonly outputTokensMax: number;
  /** What a generation costs at least once it began. */
  readonly generationFloorTokens: number;
  /** Credits for 1,000 tokens. */
  readonly inputRate: bigint;
  readonly outputRate: bigint;
  readonly reservedCredits: bigint;
  readonly buckets: readonly Bucket[];
}

export interface TurnSettlement {
  readonly outcome: TurnOutcome;
  readonly method: SettlementMethod;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Other things that the policy counts, by name. */
  readonly counters: Readonly<Record<string, number>>;
  /** What is taken from the quota. */
  readonly credits: bigint;
  /** The actual usage was past the tolerated overshoot: charged up to there, and a person should look. */
  readonly capped: boolean;
  /** A short code: why the turn ended as it did. */
  readonly reason: string | null;
}

export interface Turn extends Reservation {
  readonly state: TurnState;
  readonly startedAt: Date;
  readonly progressAt: Date;
  /** Null while it runs. */
  readonly settlement: TurnSettlement | null;
  readonly finalizedAt: Date | null;
  /** Whose call finalised it. */
  readonly finalizationId: string | null;
  /** The one message that tells of it. */
  readonly messageId: string | null;
}

export const STATE_OF: Readonly<Record<TurnOutcome, TurnState>> = {
  completed: "completed",
  failed: "failed",
  aborted: "cancelled",
};

export type ReserveResult =
  | { readonly kind: "reserved"; readonly turn: Turn }
  /** The same turn of the same request: a repeat of a call whose answer was lost. Nothing was reserved again. */
  | { readonly kind: "exists"; readonly turn: Turn }
  | { readonly kind: "chat_busy"; readonly turnId: string }
  | { readonly kind: "quota_exceeded"; readonly bucket: string; readonly limitCredits: bigint; readonly usedCredits: bigint };

export interface FinalizeRequest extends TurnRef, At {
  /** Made before the first try: tells a caller that has to try again that the winner was itself. */
  readonly finalizationId: string;
  /** Only if nothing was heard of the turn for so long, judged under the row's lock (EV-34). */
  readonly idleMs?: number | undefined;
  readonly tx?: Transaction | undefined;
}

export interface FinalizeWork {
  /** Pure: what the turn is charged. */
  settle(turn: Turn): TurnSettlement;
  /**
   * Hands the one message over, in the transaction where there is one, and returns its id. Called for the winner only; if it
   * throws, nothing has happened. It may be called again when the database asks for the transaction to be repeated.
   */
  hand(turn: Turn, tx: Transaction | undefined): Promise<string>;
}

export type FinalizeResult =
  | { readonly kind: "finalized"; readonly turn: Turn }
  /** Another call was first: no debit, no message (OBX-13). */
  | { readonly kind: "already"; readonly turn: Turn }
  /** With `idleMs` only: it made progress, or another call is finalising it right now. */
  | { readonly kind: "busy" }
  | { readonly kind: "not_found" };

export interface QuotaUsage {
  readonly period: string;
  readonly bucket: string;
  readonly limitCredits: bigint | null;
  readonly reservedCredits: bigint;
  readonly spentCredits: bigint;
  readonly turnsRunning: number;
  readonly turnsSettled: number;
}

/** A quota row that does not add up to its turns; there is none unless a program wrote around the seam. */
export interface QuotaGap {
  readonly tenantId: string;
  readonly userId: string | null;
  readonly period: string;
  readonly bucket: string;
  readonly what: "reserved" | "spent";
  readonly rowCredits: bigint;
  readonly turnCredits: bigint;
}

export interface UsageStore {
  /** `transactions`: reserve and finalize are transactions of the database that holds the messages, or take part in the caller's. */
  readonly traits: { readonly name: string; readonly transactions: boolean };
  open(): Promise<void>;
  close(): Promise<void>;
  reserve(reservation: Reservation, options?: { readonly tx?: Transaction | undefined } & At): Promise<ReserveResult>;
  /** "Still at it": keeps the watchdog away. False: the turn is not running. */
  progress(ref: TurnRef, at?: At): Promise<boolean>;
  finalize(request: FinalizeRequest, work: FinalizeWork): Promise<FinalizeResult>;
  /** Running turns that nothing was heard of for so long, the longest silent first. */
  orphans(request: { readonly idleMs: number; readonly limit: number } & At): Promise<TurnRef[]>;
  turn(ref: TurnRef): Promise<Turn | null>;
  quota(of: { readonly tenantId: string; readonly userId: string | null; readonly period: string }): Promise<QuotaUsage[]>;
  /** Compares quota rows with the turns they come from. */
  verify(): Promise<QuotaGap[]>;
}
