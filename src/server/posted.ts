/**
 * A posted body as messages: the envelope is scanned once, payloads are cut out as text, every other field is checked by
 * itself, by the rules that hold for a message from code. Everything that is wrong with a message is collected, so that a caller learns all of it in one answer.
 */
import { FAULTS_NAMED_MAX } from "../contract/faults.ts";
import { type ErrorCode, isMakegoodError, MakegoodError } from "../message/errors.ts";
import { type Cursor, cursorOn, eachElement, eachMember, expectEnd, takeValue } from "../message/json-scanner.ts";
import { LIMITS } from "../message/limits.ts";
import { isTooLong, isTopicName, numberProblem, textProblem } from "../message/validate.ts";

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
  twice: Set<string> | null;
}

const envelope = (): Envelope => ({ fields: new Map(), payload: null, faults: [], twice: null });

/** What is wrong with a value; null when nothing is. */
type FieldCheck = (value: unknown) => Fault | null;

const invalid = (detail: string | null): Fault | null => (detail === null ? null : { code: "invalid_message", detail });
const text =
  (name: string, bytesMax: number): FieldCheck =>
  (value) => {
    const wrong = textProblem(value, bytesMax);
    return wrong === null ? null : invalid(`\`${name}\` ${wrong}`);
  };
const integer =
  (name: string, min: number, max: number): FieldCheck =>
  (value) =>
    invalid(numberProblem(`\`${name}\``, value, min, max));

/** Of a key, from a body or a header. */
export const keyFault: FieldCheck = (key) => {
  const fault = text("key", LIMITS.keyBytesMax)(key);
  return fault && isTooLong(key, LIMITS.keyBytesMax) ? { ...fault, code: "key_too_long" } : fault;
};

function topicFault(topic: unknown): Fault | null {
  if (typeof topic !== "string") return invalid("`topic` is missing: a string namespace/name");
  return isTopicName(topic) ? null : { code: "invalid_topic", detail: "`topic` is not of the form namespace/name" };
}

/** What each field beside the payload may be. */
const FIELDS: Readonly<Record<string, FieldCheck>> = {
  topic: topicFault,
  key: keyFault,
  tenant_id: text("tenant_id", LIMITS.tenantIdBytesMax),
  ordering_key: text("ordering_key", LIMITS.orderingKeyBytesMax),
  delay_ms: integer("delay_ms", 0, LIMITS.delayMsMax),
  priority: integer("priority", LIMITS.priorityMin, LIMITS.priorityMax),
};

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

function givenTwice(envelope: Envelope, name: string): void {
  const { faults } = envelope;
  envelope.twice ??= new Set();
  const { twice } = envelope;
  if (twice.has(name) || twice.size >= FAULTS_NAMED_MAX) return;
  twice.add(name);
  faults.push({ code: "invalid_message", detail: `\`${name.slice(0, 100)}\` is given twice` });
}

function checked({ fields, payload, faults }: Envelope, payloadBytesMax: number): Posted {
  const unknown: string[] = [];
  for (const [name, value] of fields) {
    const faultOf = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
    if (!faultOf) unknown.push(name);
    // Null is as good as absent, but for the topic.
    const fault = value === null && name !== "topic" ? null : (faultOf?.(value) ?? null);
    if (fault !== null) faults.push(fault);
  }
  if (!fields.has("topic")) faults.push(topicFault(undefined) as Fault);
  if (unknown.length > 0) {
    faults.unshift({ code: "invalid_message", detail: `unknown ${unknown.length > 1 ? "fields" : "field"} ${named(unknown)}` });
  }
  if (payload === null) faults.push({ code: "invalid_message", detail: "`payload` is missing" });
  else if (Buffer.byteLength(payload) > payloadBytesMax)
    faults.push({ code: "payload_too_large", detail: `the payload may have at most ${payloadBytesMax} bytes` });
  if (faults.length > 0) return { faults };
  const message = {
    topic: fields.get("topic"),
    payload,
    key: fields.get("key") ?? null,
    tenantId: fields.get("tenant_id") ?? null,
    orderingKey: fields.get("ordering_key") ?? null,
    delayMs: fields.get("delay_ms") ?? 0,
    priority: fields.get("priority") ?? 0,
  };
  return { message: message as PostedMessage, faults: [] };
}

function named(names: readonly string[]): string {
  return names
    .slice(0, 10)
    .map((name) => JSON.stringify(name.slice(0, 100)))
    .join(", ");
}
