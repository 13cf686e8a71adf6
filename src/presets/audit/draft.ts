/**
 * From what a producer wrote to the message that carries it: the record under its event id, or the quarantine with the reason and the
 * whole text. Judged before anything is tried, so that an open breaker or an outage does not hide that a record does not fit (AUD-22).
 */
import { payloadHash, payloadText } from "../../message/validate.ts";
import { faultText, readRecord } from "./record.ts";
import { AUDIT_CLIENT_NAMESPACE, auditKind, QUARANTINE } from "./registry.ts";
import type { Quarantined } from "./store-sink.ts";

export interface Draft {
  readonly auditType: string;
  readonly topic: string;
  readonly key: string;
  /** Undefined: it cannot be written as JSON. */
  readonly text: string | undefined;
}

export function draftOf(type: string, eventId: string, record: unknown): Draft {
  const kind = auditKind(type);
  const auditType = kind?.type ?? "unknown";
  const named = { auditType, topic: `${AUDIT_CLIENT_NAMESPACE}/${kind?.type ?? QUARANTINE}`, key: eventId };
  let text: string;
  try {
    text = payloadText(record);
  } catch {
    return { ...named, text: undefined };
  }
  const read = kind === null ? null : readRecord(kind, text);
  if (read?.ok) return { ...named, text };
  const reason = read === null ? "nobody registered this audit type" : faultText(read.faults);
  return quarantineOf({ ...named, text }, kind?.type ?? String(type), reason);
}

/** The same record on its way to the quarantine; as it is where the reason makes it too large, for its own sink rejects it as well. */
export function quarantineOf(draft: Draft & { readonly text: string }, type: string, reason: string): Draft {
  const quarantined: Quarantined = { audit_type: type, reason, record: draft.text };
  // The same text again is the same dead letter, another text under the same event id is another one.
  const key = payloadHash(`${type}\n${draft.text}`);
  try {
    return { ...draft, topic: `${AUDIT_CLIENT_NAMESPACE}/${QUARANTINE}`, key, text: payloadText(quarantined) };
  } catch {
    return { ...draft, key };
  }
}

/** The record first, so that nothing of it is covered; only what is absent is filled in. What is no object stays what it is. */
export function withDefaults(record: unknown, defaults: Record<string, unknown>): unknown {
  if (typeof record !== "object" || record === null || Array.isArray(record)) return record ?? null;
  const missing = Object.entries(defaults).filter(([name, value]) => value !== undefined && !(name in record));
  return { ...Object.fromEntries(missing), ...record };
}
