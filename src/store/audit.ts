/**
 * The audit seam: records that are written once, kept for years and never changed. An event id is unique for as long as its record
 * is kept; a second write of the same text is a duplicate, of another text a conflict, and neither changes anything. Nothing
 * is deleted without a policy that says how long to keep. Every engine passes testing/audit-conformance.
 */
import type { Fence } from "../platform/job.ts";
import type { DepartMonth } from "./evidence.ts";
import type { At, Store } from "./store.ts";

/** One record: the fields that are searched for, and the exact text that the producer sent (I8). */
export interface AuditRecord {
  readonly eventId: string;
  /** The registered type, for example `ai-decisions`. */
  readonly auditType: string;
  readonly correlationId: string;
  /** When it happened, by the producer's clock. */
  readonly occurredAt: Date;
  readonly actor: string;
  readonly resource: string;
  readonly outcome: string;
  readonly payload: string;
}

export interface StoredAudit extends AuditRecord {
  /** Its place in the order of commits: a reader that goes on from here misses nothing. Null: it has none yet. Digits only. */
  readonly position: string | null;
  /** Rises with each record; tells apart what happened in the same millisecond (DA-23). Digits only. */
  readonly sequence: string;
  /** When it was stored, by the store's clock; retention counts from here. */
  readonly recordedAt: Date;
}

/** `conflict`: the event id belongs to a record with another text; `sequence` is that one's and nothing was written. */
export interface AuditWritten {
  readonly kind: "stored" | "duplicate" | "conflict";
  readonly sequence: string;
}

export interface AuditFilter {
  readonly auditType?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly actor?: string | undefined;
  readonly resource?: string | undefined;
  readonly outcome?: string | undefined;
  /** It happened at this moment or later. */
  readonly since?: Date | undefined;
  /** It happened before this moment. */
  readonly until?: Date | undefined;
  readonly limit: number;
  /** Where the page before ended. */
  readonly after?: string | undefined;
}

export interface AuditPage {
  readonly records: readonly StoredAudit[];
  /** For the next page, which may be empty where much was passed over; null: that was all there is now. */
  readonly next: string | null;
}

/** One record, or everything that belongs to one correlation id, what comes later included. */
export type HoldTarget = { readonly eventId: string } | { readonly correlationId: string };

export interface AuditHold {
  readonly id: string;
  readonly eventId: string | null;
  readonly correlationId: string | null;
  readonly reason: string;
  readonly placedBy: string;
  readonly placedAt: Date;
  readonly releasedBy: string | null;
  readonly releasedAt: Date | null;
  readonly releaseReason: string | null;
}

/** Who asks, and why: it becomes part of the record. */
export interface Asked {
  readonly actor: string;
  readonly reason: string;
}

export interface AuditRetention extends At {
  /** Null: no policy, so everything is kept. A month leaves as a whole, once all of it is older than this. */
  readonly keptMs: number | null;
  /** Called in the transaction in which a month goes; what it throws keeps the month. */
  readonly departs?: DepartMonth | undefined;
  /** The leadership under which it is done: once that has ended, nothing more goes. */
  readonly under?: Fence | null | undefined;
  /** Records go to the archive first, in the same write, where the store has one. */
  readonly archive?: AuditArchive | undefined;
  /** Only counts what would go; nothing changes. */
  readonly dryRun?: boolean | undefined;
}

export interface AuditArchive {
  /** False: of their text nothing is kept, only the fact that they went. */
  readonly text: boolean;
  /** Hears of each chunk, once it is written. */
  told(chunk: { readonly rows: number; readonly bytes: number }): void;
}

export interface AuditStore {
  /** Stored means durable: identity and record are one write. */
  write(record: AuditRecord, at?: At): Promise<AuditWritten>;
  get(eventId: string): Promise<StoredAudit | null>;
  /** In the order of commits: a record that is committed later stands later, whatever its sequence. */
  list(filter: AuditFilter): Promise<AuditPage>;
  /** Held records survive retention, and their month with them. Null: there is no such record. */
  hold(target: HoldTarget, by: Asked, at?: At): Promise<AuditHold | null>;
  /** Null: there is no such hold, or it was released before. */
  release(id: string, by: Asked, at?: At): Promise<AuditHold | null>;
  /** Newest first; `active`: only those that hold. */
  holds(filter: { readonly active: boolean; readonly limit: number; readonly after?: string | undefined }): Promise<AuditHold[]>;
  /** Deletes what the policy no longer keeps and nothing holds, and keeps room ahead for new records. Returns how many records went. */
  prune(retention: AuditRetention): Promise<number>;
}

/** A store that keeps audit records as well. */
export interface WithAudit {
  readonly audit: AuditStore;
}

/** The audit seam of a store; null where it has none and the endpoints answer `needs_postgres`. */
export function auditOf(store: Store): AuditStore | null {
  return (store as Store & Partial<WithAudit>).audit ?? null;
}
