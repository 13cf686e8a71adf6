/**
 * An entry of the seed's stream `audit-dlq` (AUD-9) as a message of the audit topics: the `read` of an inlet of makegood/redis. A record
 * that the seed wrote without an envelope gets one made of the entry, so that a second reading is the same event; what cannot
 * be read becomes a message of the quarantine and is never thrown away (DA-13).
 */
import { NOT_REGISTERED, quarantineMessage } from "./quarantine.ts";
import { faultText } from "./record.ts";
import { type AUDIT_CLIENT_NAMESPACE, AUDIT_NAMESPACE, auditKind } from "./registry.ts";
import { readEither } from "./seed-record.ts";

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
    const { key, ...message } = quarantineMessage(namespace, type, reason, audit_data);
    // Each entry is a dead letter of its own, under its own key; only what is kept as it came has its type in the key.
    return message.payloadText === audit_data ? { ...message, key } : message;
  };
  if (kind === null) return quarantined(audit_type, NOT_REGISTERED);
  const read = readEither(kind, audit_data, {
    eventId: `${stream}/${entry.id}`,
    newId: () => `${stream}/${entry.id}`,
    actor: stream,
    occurredMs: addedMs(entry),
  });
  if (!read.ok) return quarantined(kind.type, faultText(read.faults));
  return { topic: `${namespace}/${kind.type}`, payloadText: read.record.payload, key: read.record.eventId };
}

/** The entry's own id has milliseconds and is Redis's time; the seed's field has seconds (DA-23). NaN: neither says. */
export function addedMs({ id, fields }: AuditStreamEntry): number {
  const ms = Number(id.split("-")[0]);
  return Number.isSafeInteger(ms) && ms > 0 ? ms : Number(fields.created_at) * 1_000;
}
