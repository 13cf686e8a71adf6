/**
 * An entry of the seed's stream `audit-dlq` (AUD-9) as a message of the audit topics: the `read` of an inlet of makegood/redis. A record
 * that the seed wrote without an envelope gets one made of the entry, so that a second reading is the same event; what cannot
 * be read becomes a message of the quarantine and is never thrown away (DA-13).
 */
import { faultText, readRecord } from "./record.ts";
import { type AUDIT_CLIENT_NAMESPACE, AUDIT_NAMESPACE, type AuditKind, auditKind, QUARANTINE } from "./registry.ts";
import type { Quarantined } from "./store-sink.ts";

/** `audit`: the reader's own store writes the records. `audit-write`: they are sent to the service. */
export type StreamNamespace = typeof AUDIT_NAMESPACE | typeof AUDIT_CLIENT_NAMESPACE;

export interface AuditStreamEntry {
  /** `milliseconds-sequence`. */
  readonly id: string;
  readonly fields: Readonly<Record<string, string | undefined>>;
}

export interface AuditStreamMessage {
  readonly topic: string;
  readonly payloadText: string;
  /** Absent: the inlet makes one of stream and entry id. */
  readonly key?: string | undefined;
}

export function readAuditEntry(
  stream: string,
  entry: AuditStreamEntry,
  namespace: StreamNamespace = AUDIT_NAMESPACE,
): AuditStreamMessage {
  const { audit_type = "", audit_data = "" } = entry.fields;
  const kind = auditKind(audit_type);
  const quarantined = (type: string, reason: string): AuditStreamMessage => {
    const payload: Quarantined = { audit_type: type, reason, record: audit_data };
    return { topic: `${namespace}/${QUARANTINE}`, payloadText: JSON.stringify(payload) };
  };
  if (kind === null) return quarantined(audit_type, "nobody registered this audit type");
  const topic = `${namespace}/${kind.type}`;
  const read = readRecord(kind, audit_data);
  if (read.ok) return { topic, payloadText: audit_data, key: read.record.eventId };
  const wrapped = wrap(stream, entry, kind, audit_data);
  const again = wrapped === null ? read : readRecord(kind, wrapped);
  if (again.ok) return { topic, payloadText: again.record.payload, key: again.record.eventId };
  return quarantined(kind.type, faultText(read.faults));
}

/** Null: it has an envelope of its own that is wrong, or is no object at all. */
function wrap(stream: string, { id, fields }: AuditStreamEntry, { type }: AuditKind, text: string): string | null {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof data !== "object" || data === null || Array.isArray(data) || "event_id" in data || "data" in data) return null;
  // Unix seconds in the seed; the entry's own id has milliseconds.
  const ms = Number(id.split("-")[0]);
  const occurred = Number.isSafeInteger(ms) && ms > 0 ? ms : Number(fields.created_at) * 1_000;
  if (!Number.isFinite(occurred)) return null;
  const own = (data as { id?: unknown }).id;
  const envelope = {
    event_id: `${stream}/${id}`,
    correlation_id: typeof own === "string" && own !== "" ? own : `${stream}/${id}`,
    occurred_at: new Date(occurred).toISOString(),
    actor: stream,
    resource: type,
    outcome: "unknown",
  };
  // The text of the data goes in as it is.
  return `${JSON.stringify(envelope).slice(0, -1)},"data":${text}}`;
}
