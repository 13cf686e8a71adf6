/**
 * The audit seam: records that are written once, kept for years and never changed. An event id is unique for as long as its record
 * is kept; a second write of the same text is a duplicate, of another text a conflict, and neither changes anything. Nothing
 * is deleted without a policy that says how long to keep. Every engine passes testing/audit-conformance.
 */
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
  readonly limit: number;
  /** The sequence of the last record that was seen. */
  readonly after?: string | undefined;
}

export interface AuditRetention extends At {
  /** Null: no policy, so everything is kept. A month leaves as a whole, once all of it is older than this. */
  readonly keptMs: number | null;
}

export interface AuditStore {
  /** Stored means durable: identity and record are one write. */
  write(record: AuditRecord, at?: At): Promise<AuditWritten>;
  get(eventId: string): Promise<StoredAudit | null>;
  /** By sequence, oldest first. */
  list(filter: AuditFilter): Promise<StoredAudit[]>;
  /** Deletes what the policy no longer keeps, and keeps room ahead for new records. Returns how many records went. */
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
