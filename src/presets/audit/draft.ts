/**
 * From what a producer wrote to the message that carries it, and back: the record under its event id, or the quarantine, a dead letter with
 * the reason and the whole text. Checked before anything is tried, so that an open breaker or an outage does not hide that a record does
 * not fit. A replay checks what is quarantined again: what fits by then is stored, the rest stays what it is.
 */
import { readObject } from "../../message/json.ts";
import { LIMITS } from "../../message/limits.ts";
import type { Outcome } from "../../message/outcome.ts";
import { redact } from "../../message/redact.ts";
import type { TopicName } from "../../message/topic.ts";
import { payloadHash, payloadText } from "../../message/validate.ts";
import { idTimeMs } from "../../platform/ids.ts";
import type { Delivery } from "../../sink/sink.ts";
import type { AuditRecord } from "../../store/audit.ts";
import { faultText, hasEnvelope, isEventId, isSameData, type ReadRecord, readEither, type Source } from "./record.ts";
import { AUDIT_CLIENT_NAMESPACE, type AuditKind, auditKind, QUARANTINE } from "./registry.ts";

export interface Carried {
  readonly topic: TopicName;
  readonly key: string;
  readonly payloadText: string;
}

export interface Draft extends Omit<Carried, "payloadText"> {
  readonly auditType: string;
  readonly eventId: string;
  /** Undefined: it cannot be written as JSON, and nothing is left but to show it. */
  readonly payloadText: string | undefined;
  readonly record: unknown;
}

/** The message that carries a record; with faults: a quarantined one. */
export function messageOf(namespace: string, type: string, text: string, source: Source) {
  const kind = auditKind(type);
  const read = kind && readEither(kind, text, source);
  if (read?.ok) {
    const { eventId: key, payload: payloadText } = read.record;
    return { topic: `${namespace}/${kind?.type}` as const, key, payloadText, faults: [] };
  }
  const faults = read?.faults ?? [{ field: "audit_type", detail: "is not registered" }];
  return { ...quarantineMessage(namespace, kind?.type ?? type, read ? faultText(faults) : NOT_REGISTERED, text), faults };
}

export function draftOf(type: string, given: unknown, source: Source): Draft {
  const kind = auditKind(type);
  const own = (given as { event_id?: unknown } | null)?.event_id;
  const eventId = isEventId(own) ? own : source.newId();
  const record = hasEnvelope(given) ? withDefaults(given, eventId, source) : (given ?? null);
  const named = { auditType: kind?.type ?? "unknown", eventId, key: eventId, record, payloadText: undefined };
  const draft: Draft = { ...named, topic: `${AUDIT_CLIENT_NAMESPACE}/${kind?.type ?? QUARANTINE}` };
  let text: string;
  try {
    text = payloadText(record);
  } catch {
    return draft;
  }
  const { faults, ...message } = messageOf(AUDIT_CLIENT_NAMESPACE, String(type), text, { ...source, newId: () => eventId });
  return { ...draft, ...message, eventId: faults.length === 0 ? message.key : eventId };
}

/**
 * For a record whose event id another one has that waits: both are kept, and the service will tell which one came second. Null: it is that
 * very record. `text`: as the producer wrote it.
 */
export function beside(namespace: string, type: string, eventId: string, payload: string, text = payload): Carried | null {
  const kind = auditKind(type);
  if (kind && isSameData(kind, eventId, payload)) return null;
  return quarantineMessage(namespace, type, "its event id belongs to another record", text);
}

/** The record as it is, and before it what it lacks. */
function withDefaults(record: object, eventId: string, { actor, occurredMs }: Source): object {
  const own = Object.entries(record).filter(([, value]) => value !== undefined);
  const defaults = { event_id: eventId, occurred_at: new Date(occurredMs).toISOString(), actor };
  const missing = Object.entries(defaults).filter(([name]) => !own.some(([has]) => has === name));
  return Object.fromEntries([...missing, ...own]);
}

export const NOT_REGISTERED = "this audit type is not registered";

const AS_IT_CAME = /^as-it-came:([a-z-]+):/;

/**
 * `record`: the text as it came, wherever it came from; it need not be JSON. The same text again is the same dead letter: a producer in a
 * loop fills nothing. What has no room beside its reason is kept as it came.
 */
function quarantineMessage(namespace: string, type: string, reason: string, record: string) {
  const whole = JSON.stringify({ audit_type: type, reason, record });
  const hash = payloadHash(`${type}\n${record}`);
  const fits = Buffer.byteLength(whole) <= LIMITS.payloadBytesMax;
  const [key, payloadText] = fits ? [hash, whole] : [`as-it-came:${type}:${hash}`, record];
  return { topic: `${namespace}/${QUARANTINE}` as const, key, payloadText };
}

export type CheckedRecord = { readonly kind: AuditKind; readonly record: AuditRecord } | { readonly refused: Outcome };

export const checked = (kind: AuditKind, read: ReadRecord): CheckedRecord =>
  read.ok ? { kind, record: read.record } : { refused: invalid(faultText(read.faults)) };

export function checkAgain({ id, key, payload }: Pick<Delivery, "id" | "key" | "payload">): CheckedRecord {
  const type = AS_IT_CAME.exec(key ?? "")?.[1];
  const { audit_type, record } = type === undefined ? (readObject(payload) ?? {}) : { audit_type: type, record: payload };
  const kind = auditKind(String(audit_type));
  if (kind === null || typeof record !== "string") return { refused: invalid(NOT_REGISTERED) };
  // From the message alone, so that each attempt makes the same envelope: its id begins with its time.
  const occurredMs = idTimeMs(String(id));
  return checked(kind, readEither(kind, record, { newId: () => `${QUARANTINE}/${id}`, actor: QUARANTINE, occurredMs }));
}

export function invalid(reason: string): Outcome {
  return { kind: "reject", code: "invalid_record", error: redact(reason) };
}
