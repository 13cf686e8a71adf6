/**
 * A posted body as messages: the envelope is scanned once, payloads are cut out as text, every other field is judged by
 * itself. Everything that is wrong with a message is collected, so that a caller learns all of it in one answer.
 */
import { type ErrorCode, isMakegoodError, MakegoodError } from "../../message/errors.ts";
import { LIMITS } from "../../message/limits.ts";
import { isTopicName } from "../../message/validate.ts";
import { type Cursor, cursorOn, eachElement, eachMember, expectEnd, takeValue } from "./payload-scanner.ts";

/** A message as posted: every field has been checked, the topic has not been looked up. */
export interface PostedMessage {
  readonly topic: string;
  readonly payload: string;
  readonly key: string | null;
  readonly tenantId: string | null;
  readonly delayMs: number;
  readonly priority: number;
  readonly orderingKey: string | null;
}

export interface Fault {
  readonly code: ErrorCode;
  readonly detail: string;
}

export type Posted = { readonly message: PostedMessage; readonly faults: readonly [] } | { readonly faults: readonly Fault[] };

export type PostedBody =
  | { readonly kind: "single"; readonly posted: Posted }
  | { readonly kind: "batch"; readonly posted: readonly Posted[] };

interface Envelope {
  /** A Map: no name in it can reach a prototype. */
  readonly fields: Map<string, unknown>;
  payload: string | null;
  readonly faults: Fault[];
}

const FIELDS = new Set(["topic", "payload", "key", "tenant_id", "delay_ms", "priority", "ordering_key"]);

/** Throws `invalid_message` or `invalid_payload` when the body as a whole is not one of the two forms. */
export function readPosted(text: string, payloadBytesMax: number): PostedBody {
  const cursor = cursorOn(text, "invalid_message");
  const single: Envelope = { fields: new Map(), payload: null, faults: [] };
  const batch: { posted: Posted[] | null } = { posted: null };
  const isObject = eachMember(cursor, (name) => {
    if (name !== "messages") return readField(cursor, single, name);
    if (batch.posted !== null) throw new MakegoodError("invalid_message", "`messages` stands there twice");
    batch.posted = readBatch(cursor, payloadBytesMax);
  });
  if (!isObject) takeValue(cursor);
  expectEnd(cursor);
  if (!isObject) throw new MakegoodError("invalid_message", "the body must be a JSON object");
  if (batch.posted === null) return { kind: "single", posted: checked(single, payloadBytesMax) };
  const beside = single.payload === null ? [...single.fields.keys()] : [...single.fields.keys(), "payload"];
  if (beside.length > 0 || single.faults.length > 0) {
    throw new MakegoodError("invalid_message", `beside \`messages\` nothing else may stand: ${named(beside)}`);
  }
  if (batch.posted.length === 0) throw new MakegoodError("invalid_message", "`messages` is empty");
  return { kind: "batch", posted: batch.posted };
}

function readBatch(cursor: Cursor, payloadBytesMax: number): Posted[] {
  const posted: Posted[] = [];
  const isArray = eachElement(cursor, (index) => {
    if (index >= LIMITS.batchMessagesMax) {
      const limit = LIMITS.batchMessagesMax;
      throw new MakegoodError("invalid_message", `a batch may have at most ${limit} messages`, { limit });
    }
    const envelope: Envelope = { fields: new Map(), payload: null, faults: [] };
    try {
      if (eachMember(cursor, (name) => readField(cursor, envelope, name))) {
        posted.push(checked(envelope, payloadBytesMax));
      } else {
        takeValue(cursor);
        posted.push({ faults: [{ code: "invalid_message", detail: "a message must be a JSON object" }] });
      }
    } catch (error) {
      // What is malformed inside an element is that element's fault; nothing after it can be read.
      if (!isMakegoodError(error)) throw error;
      throw new MakegoodError(error.code, error.message, { ...error.detail, index });
    }
  });
  if (!isArray) throw new MakegoodError("invalid_message", "`messages` must be an array");
  return posted;
}

function readField(cursor: Cursor, envelope: Envelope, name: string): void {
  if (name === "payload") {
    if (envelope.payload !== null) envelope.faults.push({ code: "invalid_message", detail: "`payload` stands there twice" });
    cursor.code = "invalid_payload";
    envelope.payload = takeValue(cursor);
    cursor.code = "invalid_message";
    return;
  }
  if (envelope.fields.has(name)) {
    envelope.faults.push({ code: "invalid_message", detail: `${named([name])} stands there twice` });
  }
  const value: unknown = JSON.parse(takeValue(cursor));
  envelope.fields.set(name, value);
}

function checked(envelope: Envelope, payloadBytesMax: number): Posted {
  const { fields, payload, faults } = envelope;
  const unknown = [...fields.keys()].filter((name) => !FIELDS.has(name));
  if (unknown.length > 0) {
    faults.push({ code: "invalid_message", detail: `unknown ${unknown.length > 1 ? "fields" : "field"} ${named(unknown)}` });
  }
  const topic = fields.get("topic");
  if (typeof topic !== "string") faults.push({ code: "invalid_message", detail: "`topic` is missing: a string namespace/name" });
  else if (!isTopicName(topic)) faults.push({ code: "invalid_topic", detail: "`topic` is not of the form namespace/name" });
  if (payload === null) faults.push({ code: "invalid_message", detail: "`payload` is missing" });
  else if (Buffer.byteLength(payload) > payloadBytesMax) {
    faults.push({ code: "payload_too_large", detail: `the payload may have at most ${payloadBytesMax} bytes` });
  }
  const message: PostedMessage = {
    topic: topic as string,
    payload: payload as string,
    key: readKey(fields.get("key"), faults),
    tenantId: readText(fields, "tenant_id", LIMITS.tenantIdBytesMax, faults),
    orderingKey: readText(fields, "ordering_key", LIMITS.orderingKeyBytesMax, faults),
    delayMs: readInteger(fields, "delay_ms", 0, LIMITS.delayMsMax, faults),
    priority: readInteger(fields, "priority", LIMITS.priorityMin, LIMITS.priorityMax, faults),
  };
  return faults.length === 0 ? { message, faults: [] } : { faults };
}

/** What is wrong with a key, from a body or a header; null when nothing is. */
export function keyFault(key: unknown): Fault | null {
  if (typeof key !== "string" || key === "")
    return { code: "invalid_message", detail: "`key` must be a string that is not empty" };
  if (Buffer.byteLength(key) > LIMITS.keyBytesMax) {
    return { code: "key_too_long", detail: `\`key\` may have at most ${LIMITS.keyBytesMax} bytes` };
  }
  return isStorable(key) ? null : { code: "invalid_message", detail: "`key` may not hold control characters or lone surrogates" };
}

function readKey(value: unknown, faults: Fault[]): string | null {
  if (value === undefined || value === null) return null;
  const fault = keyFault(value);
  if (fault) faults.push(fault);
  return value as string;
}

function readText(fields: Envelope["fields"], name: string, bytesMax: number, faults: Fault[]): string | null {
  const value = fields.get(name);
  if (value === undefined || value === null) return null;
  const fits = typeof value === "string" && value !== "" && Buffer.byteLength(value) <= bytesMax && isStorable(value);
  if (!fits) {
    const detail = `\`${name}\` must be a string of 1 to ${bytesMax} bytes without control characters or lone surrogates`;
    faults.push({ code: "invalid_message", detail });
  }
  return value as string;
}

function readInteger(fields: Envelope["fields"], name: string, min: number, max: number, faults: Fault[]): number {
  const value = fields.get(name);
  if (value === undefined || value === null) return 0;
  if (!Number.isInteger(value) || (value as number) < min || (value as number) > max) {
    faults.push({ code: "invalid_message", detail: `\`${name}\` must be an integer from ${min} to ${max}` });
  }
  return value as number;
}

/** PostgreSQL has no NUL, UTF-8 has no lone surrogate, and a key becomes a header: such text would be refused too late. */
function isStorable(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: refusing control characters is the point.
  return !/[\u0000-\u001f\u007f]|\p{Surrogate}/u.test(text);
}

function named(names: readonly string[]): string {
  return names
    .slice(0, 10)
    .map((name) => JSON.stringify(name.slice(0, 100)))
    .join(", ");
}
