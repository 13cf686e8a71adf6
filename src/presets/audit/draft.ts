/**
 * From what a producer wrote to the message that carries it: the record under its event id, or the quarantine with the reason and
 * the whole text. Checked before anything is tried, so that an open breaker or an outage does not hide that a record does not
 * fit.
 */
import type { TopicName } from "../../message/topic.ts";
import { payloadText } from "../../message/validate.ts";
import { NOT_REGISTERED, quarantineMessage } from "./quarantine.ts";
import { faultText, isEventId } from "./record.ts";
import { AUDIT_CLIENT_NAMESPACE, auditKind, QUARANTINE } from "./registry.ts";
import { hasEnvelope, readEither, type Source } from "./seed-record.ts";

export interface Draft {
  readonly auditType: string;
  readonly eventId: string;
  readonly topic: TopicName;
  readonly key: string;
  /** Undefined: it cannot be written as JSON, and nothing is left but to show it. */
  readonly payloadText: string | undefined;
  readonly record: unknown;
}

/** The message that carries a record; `fits` false: as a quarantined one. */
export function messageOf(namespace: string, type: string, text: string, source: Source) {
  const kind = auditKind(type);
  const read = kind && readEither(kind, text, source);
  if (!read?.ok) {
    const reason = read ? faultText(read.faults) : NOT_REGISTERED;
    return { fits: false, ...quarantineMessage(namespace, kind?.type ?? type, reason, text) };
  }
  const topic = `${namespace}/${kind?.type}` as const;
  return { fits: true, topic, key: read.record.eventId, payloadText: read.record.payload };
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
  const { fits, ...message } = messageOf(AUDIT_CLIENT_NAMESPACE, String(type), text, { ...source, newId: () => eventId });
  return { ...draft, ...message, eventId: fits ? message.key : eventId };
}

export function quarantined(draft: Draft, type: string, reason: string, text: string): Draft {
  return { ...draft, ...quarantineMessage(AUDIT_CLIENT_NAMESPACE, type, reason, text) };
}

/** The record as it is, and before it what it lacks. */
function withDefaults(record: object, eventId: string, { actor, occurredMs }: Source): object {
  const own = Object.entries(record).filter(([, value]) => value !== undefined);
  const defaults = { event_id: eventId, occurred_at: new Date(occurredMs).toISOString(), actor };
  const missing = Object.entries(defaults).filter(([name]) => !own.some(([has]) => has === name));
  return Object.fromEntries([...missing, ...own]);
}
