/**
 * A posted body as messages: the envelope is scanned once, payloads are cut out as text, every other field is checked by
 * itself, by the rules that hold for a message from code. Everything that is wrong with a message is collected, so that a caller learns all of it in one answer.
 */
import { FAULTS_NAMED_MAX } from "../contract/faults.ts";
import { type ErrorCode, isMakegoodError, MakegoodError } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import { isTooLong, isTopicName, numberProblem, textProblem } from "../message/validate.ts";
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
  /** Names that came twice and were said so: once each, and no more than are shown. */
  readonly twice: Set<string>;
}

const envelope = (): Envelope => ({ fields: new Map(), payload: null, faults: [], twice: new Set() });

const FIELDS = new Set(["topic", "payload", "key", "tenant_id", "delay_ms", "priority", "ordering_key"]);

/** Throws `invalid_message` or `invalid_payload` when the body as a whole is not one of the two forms. */
export function readPosted(text: string, payloadBytesMax: number): PostedBody {
  const cursor = cursorOn(text, "invalid_message");
  const single = envelope();
  const batch: { posted: Posted[] | null } = { posted: null };
  const isObject = eachMember(cursor, (name) => {
    if (name !== "messages") return readField(cursor, single, name);
    if (batch.posted !== null) throw new MakegoodError("invalid_message", "`messages` is given twice");
    batch.posted = readBatch(cursor, payloadBytesMax);
  });
  if (!isObject) takeValue(cursor);
  expectEnd(cursor);
  if (!isObject) throw new MakegoodError("invalid_message", "the body must be a JSON object");
  if (batch.posted === null) return { kind: "single", posted: checked(single, payloadBytesMax) };
  const beside = single.payload === null ? [...single.fields.keys()] : [...single.fields.keys(), "payload"];
  if (beside.length > 0 || single.faults.length > 0) {
    throw new MakegoodError("invalid_message", `a body with \`messages\` has no other field: ${named(beside)}`);
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
    const one = envelope();
    try {
      if (eachMember(cursor, (name) => readField(cursor, one, name))) {
        posted.push(checked(one, payloadBytesMax));
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
    if (envelope.payload !== null) givenTwice(envelope, "payload");
    cursor.code = "invalid_payload";
    envelope.payload = takeValue(cursor);
    cursor.code = "invalid_message";
    return;
  }
  if (envelope.fields.has(name)) givenTwice(envelope, name);
  const value: unknown = JSON.parse(takeValue(cursor));
  envelope.fields.set(name, value);
}

function givenTwice({ twice, faults }: Envelope, name: string): void {
  if (twice.has(name) || twice.size >= FAULTS_NAMED_MAX) return;
  twice.add(name);
  faults.push({ code: "invalid_message", detail: `\`${name.slice(0, 100)}\` is given twice` });
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
  const problem = textProblem(key, LIMITS.keyBytesMax);
  if (problem === null) return null;
  return { code: isTooLong(key, LIMITS.keyBytesMax) ? "key_too_long" : "invalid_message", detail: `\`key\` ${problem}` };
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
  const problem = textProblem(value, bytesMax);
  if (problem !== null) faults.push({ code: "invalid_message", detail: `\`${name}\` ${problem}` });
  return value as string;
}

function readInteger(fields: Envelope["fields"], name: string, min: number, max: number, faults: Fault[]): number {
  const value = fields.get(name);
  if (value === undefined || value === null) return 0;
  const problem = numberProblem(`\`${name}\``, value, min, max);
  if (problem !== null) faults.push({ code: "invalid_message", detail: problem });
  return value as number;
}

function named(names: readonly string[]): string {
  return names
    .slice(0, 10)
    .map((name) => JSON.stringify(name.slice(0, 100)))
    .join(", ");
}
