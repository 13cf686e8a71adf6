/**
 * Records that do not fit, kept as dead letters with their whole text. A replay checks them again: what fits by then
 * is stored, the rest stays what it is.
 */
import { readObject } from "../../message/json.ts";
import { LIMITS } from "../../message/limits.ts";
import type { Outcome } from "../../message/outcome.ts";
import { payloadHash } from "../../message/validate.ts";
import { redact } from "../../sink/redact.ts";
import type { Delivery } from "../../sink/sink.ts";
import type { AuditRecord } from "../../store/audit.ts";
import { faultText, type ReadRecord } from "./record.ts";
import { type AuditKind, auditKind, QUARANTINE } from "./registry.ts";
import { readEither } from "./seed-record.ts";

export const INVALID_RECORD = "invalid_record";
export const NOT_REGISTERED = "this audit type is not registered";

const AS_IT_CAME = /^as-it-came:([a-z-]+):/;

/**
 * `record`: the text as it came, wherever it came from; it need not be JSON. The same text again is the same dead letter: a producer in a
 * loop fills nothing. What has no room beside its reason is kept as it came.
 */
export function quarantineMessage(namespace: string, type: string, reason: string, record: string) {
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
  const occurredMs = Number.parseInt(String(id).replace("-", "").slice(0, 12), 16);
  return checked(kind, readEither(kind, record, { newId: () => `${QUARANTINE}/${id}`, actor: QUARANTINE, occurredMs }));
}

export function invalid(reason: string): Outcome {
  return { kind: "reject", code: INVALID_RECORD, error: redact(reason) };
}
