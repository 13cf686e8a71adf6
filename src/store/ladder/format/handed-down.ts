/**
 * A message on its way down the ladder, as one JSON object: what the journal keeps and what the ERROR log shows when nothing else
 * could keep it. The payload stands in it as text, so that it comes back byte for byte (I8); masked fields leave it only sealed.
 */
import { errorText } from "../../../message/errors.ts";
import type { NewMessage } from "../../../message/message.ts";
import { checkFields, isTopicName, parsePayloadText, payloadHash } from "../../../message/validate.ts";
import type { Sealer } from "./seal.ts";
import { readTried, type TriedBelow, triedJson } from "./tried-below.ts";

export interface HandedDown {
  readonly message: NewMessage;
  /** When it was handed down, by that process's wall clock: its delay counts from here. */
  readonly atMs: number;
  /** Absent: it was not attempted since it came here. */
  readonly tried?: TriedBelow | undefined;
}

/** How an entry is to be written. */
export interface EntryForm {
  /** Seals the payload, which then does not stand in it in clear. */
  readonly sealer?: Sealer | null | undefined;
  /** Members of the payload that must not be read: shown as `[masked]`, and the whole payload sealed beside that if it can be. */
  readonly maskFields?: readonly string[] | undefined;
}

const MASKED = "[masked]";

export function entryJson({ message, atMs, tried }: HandedDown, { sealer, maskFields = [] }: EntryForm = {}): string {
  const { id, topic, tenantId, key, payload, delayMs, priority, orderingKey, traceparent, schemaVersion, directTry } = message;
  const masked = maskFields.length > 0 ? maskedText(payload, maskFields) : null;
  const shown =
    masked !== null && masked !== payload ? { payload_masked: masked } : sealer && maskFields.length === 0 ? {} : { payload };
  const sealed = sealer && !("payload" in shown) ? { sealed: sealer.seal(payload, id) } : {};
  return JSON.stringify({
    v: 1,
    id,
    topic,
    tenant_id: tenantId,
    key,
    at: new Date(atMs).toISOString(),
    delay_ms: delayMs,
    priority,
    ordering_key: orderingKey,
    traceparent,
    schema_version: schemaVersion,
    direct_try: directTry ? { code: directTry.code, error: directTry.error, rejected: directTry.rejected ?? false } : null,
    ...(tried ? { tried: triedJson(tried) } : {}),
    ...shown,
    ...sealed,
  });
}

export type EntryRead = { readonly ok: true; readonly entry: HandedDown } | { readonly ok: false; readonly fault: string };

/** Reads an entry back; text that is not a message is an answer, not a throw. */
export function readEntry(value: unknown, sealer: Sealer | null = null): EntryRead {
  if (typeof value !== "object" || value === null) return { ok: false, fault: "it is not an object" };
  const given = value as Record<string, unknown>;
  if (given.v !== 1) return { ok: false, fault: `its version is ${String(given.v)}: a newer Makegood wrote it` };
  const payload = payloadOf(given, sealer);
  if ("fault" in payload) return { ok: false, fault: payload.fault };
  const direct = given.direct_try as { code?: unknown; error?: unknown; rejected?: unknown } | null | undefined;
  const text = (value: unknown): string | null => (typeof value === "string" ? value : null);
  const number = (value: unknown): number => (typeof value === "number" ? value : 0);
  const key = text(given.key);
  const message: NewMessage = {
    id: String(given.id),
    topic: String(given.topic),
    tenantId: text(given.tenant_id),
    key,
    payload: payload.text,
    payloadHash: key === null ? "" : payloadHash(payload.text),
    delayMs: number(given.delay_ms),
    priority: number(given.priority),
    orderingKey: text(given.ordering_key),
    traceparent: text(given.traceparent),
    schemaVersion: typeof given.schema_version === "number" ? given.schema_version : null,
    ...(direct
      ? {
          directTry: {
            code: text(direct.code),
            error: text(direct.error),
            ...(direct.rejected === true ? { rejected: true } : {}),
          },
        }
      : {}),
  };
  const atMs = Date.parse(String(given.at));
  try {
    checkFields({ ...message, id: message.id });
    if (!isTopicName(message.topic)) return { ok: false, fault: `${JSON.stringify(message.topic)} is not a topic's name` };
    parsePayloadText(message.payload);
  } catch (error) {
    return { ok: false, fault: errorText(error) };
  }
  if (Number.isNaN(atMs)) return { ok: false, fault: "it does not say when it was written" };
  const tried = readTried(given.tried);
  return { ok: true, entry: tried ? { message, atMs, tried } : { message, atMs } };
}

function payloadOf(given: Record<string, unknown>, sealer: Sealer | null): { text: string } | { fault: string } {
  if (typeof given.payload === "string") return { text: given.payload };
  if (typeof given.sealed !== "string") {
    return { fault: "its payload was masked and no seal key was set: it cannot be restored from here" };
  }
  if (!sealer) return { fault: "its payload is sealed: give the seal key (MAKEGOOD_SEAL_KEY)" };
  return sealer.open(given.sealed, String(given.id));
}

/** The payload with the named members hidden, at any depth; null where the text is not JSON. */
export function maskedText(payload: string, maskFields: readonly string[]): string | null {
  const names = new Set(maskFields.map((name) => name.toLowerCase()));
  try {
    let hidden = false;
    const text = JSON.stringify(JSON.parse(payload), (name, value) => {
      if (!names.has(name.toLowerCase())) return value;
      hidden = true;
      return MASKED;
    });
    // Untouched where nothing was hidden: JSON.parse may lose digits that the payload has.
    return hidden ? text : payload;
  } catch {
    return null;
  }
}
