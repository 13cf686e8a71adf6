/**
 * What may become a message: the form of names, keys and numbers, and payloads as exact text. Each check throws the one
 * error class with the code that the API shows too; nothing that passes here can be refused for its form by a store.
 */
import { hash } from "node:crypto";
import { errorText, MakegoodError } from "./errors.ts";
import { LIMITS } from "./limits.ts";
import type { TopicName } from "./topic.ts";

const TOPIC_PART = /^[a-z0-9_][a-z0-9._-]*$/;

/** `namespace/name`, lower case: it stands in addresses, headers, metric labels and patterns. */
export function isTopicName(name: string): name is TopicName {
  const parts = name.split("/");
  return parts.length === 2 && parts.every((part) => part.length <= LIMITS.topicPartBytesMax && TOPIC_PART.test(part));
}

/** A worker's choice of topics: a name, `namespace/*`, or `*` for all. */
export function topicMatches(pattern: string, name: string): boolean {
  if (pattern === "*" || pattern === "*/*") return true;
  return pattern.endsWith("/*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

export function isTopicPattern(pattern: string): boolean {
  return pattern === "*" || pattern === "*/*" || isTopicName(pattern.endsWith("/*") ? `${pattern.slice(0, -1)}x` : pattern);
}

// A raw control character in a key cannot travel in a header, and a NUL not in a PostgreSQL text.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Whether every surrogate has its partner, so that the text survives UTF-8 unchanged. */
export function isWellFormed(text: string): boolean {
  // ES2024, in every Node since 20; the compiler's library is older.
  return (text as string & { isWellFormed(): boolean }).isWellFormed();
}

/** The options of one message, as a caller may give them. */
export interface MessageFields {
  readonly key?: string | null | undefined;
  readonly tenantId?: string | null | undefined;
  readonly delayMs?: number | undefined;
  /** −100 … 100, higher first. */
  readonly priority?: number | undefined;
  /** Messages of a topic that carry the same one are delivered in order, one at a time. */
  readonly orderingKey?: string | null | undefined;
  readonly traceparent?: string | null | undefined;
  /** Made by the caller, for its own retries: a UUID version 7. */
  readonly id?: string | undefined;
}

export function checkFields(fields: MessageFields): void {
  checkText("key", fields.key, LIMITS.keyBytesMax);
  checkText("tenantId", fields.tenantId, LIMITS.tenantIdBytesMax);
  checkText("orderingKey", fields.orderingKey, LIMITS.orderingKeyBytesMax);
  checkNumber("delayMs", fields.delayMs, 0, LIMITS.delayMsMax, false);
  checkNumber("priority", fields.priority, LIMITS.priorityMin, LIMITS.priorityMax, true);
  if (fields.traceparent != null && !isTraceparent(fields.traceparent)) {
    throw invalid("traceparent", "must be a W3C traceparent such as 00-<32 hex>-<16 hex>-01");
  }
  if (fields.id !== undefined && !(typeof fields.id === "string" && UUID_V7.test(fields.id))) {
    throw invalid("id", "must be a UUID version 7 in lower case: its time chooses where the message is kept");
  }
}

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[\x21-\x7e]{0,200})?$/;

export function isTraceparent(text: unknown): text is string {
  return typeof text === "string" && TRACEPARENT.test(text);
}

export function invalid(field: string, what: string): MakegoodError {
  return new MakegoodError("invalid_message", `${field} ${what}`, { field });
}

function checkText(field: string, value: unknown, bytesMax: number): void {
  if (value === null || value === undefined) return;
  const problem = textProblem(value, bytesMax);
  if (problem === null) return;
  const code = field === "key" && isTooLong(value, bytesMax) ? "key_too_long" : "invalid_message";
  throw new MakegoodError(code, `${field} ${problem}`, { field, limit: bytesMax });
}

export function isTooLong(value: unknown, bytesMax: number): boolean {
  if (typeof value !== "string") return false;
  return value.length > bytesMax || (value.length * 3 > bytesMax && Buffer.byteLength(value) > bytesMax);
}

/** What is wrong with a key, a tenant or an ordering key, to be put behind its name; null: nothing. */
export function textProblem(value: unknown, bytesMax: number): string | null {
  if (typeof value !== "string" || value === "") return "must be a text of at least one character";
  if (isTooLong(value, bytesMax)) return `may have at most ${bytesMax} bytes`;
  if (CONTROL.test(value)) return "must not contain control characters";
  return isWellFormed(value) ? null : "contains half of a surrogate pair and cannot be written as UTF-8";
}

export function checkNumber(field: string, value: unknown, min: number, max: number, whole: boolean): void {
  const problem = value === undefined ? null : numberProblem(field, value, min, max, whole);
  if (problem !== null) throw new MakegoodError("invalid_message", problem, { field });
}

/** What is wrong with a number, in words; null: nothing. */
export function numberProblem(name: string, value: unknown, min: number, max: number, whole = true): string | null {
  if (typeof value === "number" && value >= min && value <= max && (!whole || Number.isInteger(value))) return null;
  return `${name} must be ${whole ? "a whole number" : "a number"} from ${min} to ${max}`;
}

/** A number that a program sets. */
export function checkSetting(name: string, value: unknown, min: number, max: number, whole = true): void {
  const problem = numberProblem(name, value, min, max, whole);
  if (problem !== null) throw new MakegoodError("invalid_config", problem);
}

const badPayload = (what: string, detail: Record<string, unknown> = {}, cause?: unknown): MakegoodError =>
  new MakegoodError("invalid_payload", `the payload ${what}`, detail, cause);

/** A value as the exact text that is stored and delivered: printed once, here (I8). */
export function payloadText(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    // A BigInt, a circular reference, a throwing toJSON, a nesting deeper than the stack.
    throw badPayload(`cannot be written as JSON: ${errorText(error)}`, {}, error);
  }
  if (text === undefined) throw badPayload("has no JSON form: undefined, a function or a symbol");
  // JSON.stringify escapes surrogates only where one stands alone; receivers disagree about what that means.
  if (text.includes("\\ud") && LONE_SURROGATE.test(text)) throw badPayload("contains half of a surrogate pair");
  checkSize(text);
  return text;
}

const LONE_SURROGATE = /(?:^|[^\\])(?:\\\\)*\\ud[89a-f][0-9a-f]{2}/;

/**
 * Text that is to be stored and delivered as it is: JSON, well-formed, no larger and no deeper than allowed. Returns its value.
 */
export function parsePayloadText(text: string): unknown {
  if (typeof text !== "string") throw badPayload("text must be a string");
  if (!isWellFormed(text)) throw badPayload("contains half of a surrogate pair");
  checkSize(text);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badPayload(`is not JSON: ${errorText(error)}`, {}, error);
  }
}

function checkSize(text: string): void {
  const limit = LIMITS.payloadBytesMax;
  if (text.length * 3 > limit) {
    const bytes = Buffer.byteLength(text);
    if (bytes > limit)
      throw new MakegoodError("payload_too_large", `the payload has ${bytes} bytes, over ${limit}`, { bytes, limit });
  }
  // So many levels need as many closing brackets: shorter texts cannot be deeper.
  if (text.length > 2 * LIMITS.payloadDepthMax && depthOf(text) > LIMITS.payloadDepthMax) {
    throw badPayload(`is nested deeper than ${LIMITS.payloadDepthMax} levels`, { limit: LIMITS.payloadDepthMax });
  }
}

/** How deep the brackets of a JSON text go; those inside strings do not count. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x22:
        for (i++; i < text.length && text.charCodeAt(i) !== 0x22; i++) if (text.charCodeAt(i) === 0x5c) i++;
        break;
      case 0x5b:
      case 0x7b:
        deepest = Math.max(deepest, ++depth);
        break;
      case 0x5d:
      case 0x7d:
        depth--;
    }
  }
  return deepest;
}

/** First 16 bytes of SHA-256 of the text, in hex. */
export function payloadHash(text: string): string {
  return hash("sha256", text, "hex").slice(0, 32);
}
