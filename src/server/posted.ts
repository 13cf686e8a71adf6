/** A posted body as messages: scanned once, payloads cut out as text, everything that is wrong with a message collected. */
import { CHECKED, type TextMessage } from "../client/build-message.ts";
import type { ProblemItem } from "../contract/route.ts";
import { isMakegoodError, MakegoodError } from "../message/errors.ts";
import { type Cursor, cursorOn, eachElement, expectEnd, takeValue } from "../message/json-scanner.ts";
import { LIMITS } from "../message/limits.ts";
import { isTooLong, isTopicName, numberProblem, textProblem } from "../message/validate.ts";
import { type Members, readMembers } from "./read-request.ts";

/** The message where there are no faults: every field has been checked, the topic has not been looked up. */
export interface Posted {
  readonly message?: TextMessage & { key: string | null; tenantId?: string | null | undefined };
  readonly faults: readonly ProblemItem[];
}

const FIELDS = new Map<string, (value: unknown) => string | null>([
  ["topic", (value) => (isTopicName(value as string) ? null : "is not of the form namespace/name")],
  ["key", (value) => textProblem(value, LIMITS.keyBytesMax)],
  ["tenant_id", (value) => textProblem(value, LIMITS.tenantIdBytesMax)],
  ["ordering_key", (value) => textProblem(value, LIMITS.orderingKeyBytesMax)],
  ["delay_ms", (value) => numberProblem("", value, 0, LIMITS.delayMsMax)?.trimStart() ?? null],
  ["priority", (value) => numberProblem("", value, LIMITS.priorityMin, LIMITS.priorityMax)?.trimStart() ?? null],
]);

const invalid = (detail: string): ProblemItem => ({ code: "invalid_message", detail });

export function faultOf(name: string, value: unknown, called?: string): ProblemItem | null {
  if (name === "topic" && typeof value !== "string") return invalid("`topic` is missing: a string namespace/name");
  const wrong = FIELDS.get(name)?.(value) ?? null;
  if (wrong === null) return null;
  const tooLong = name === "key" && isTooLong(value, LIMITS.keyBytesMax);
  const code = name === "topic" ? "invalid_topic" : tooLong ? "key_too_long" : "invalid_message";
  return { code, detail: `${called ?? `\`${name}\``} ${wrong}` };
}

/** Throws `invalid_message` or `invalid_payload` when the body as a whole is neither one message nor a batch. */
export function readPosted(body: string, payloadBytesMax: number, traceparent: string | null = null): Posted | Posted[] {
  const cursor = cursorOn(body, "invalid_message");
  const check = (members: Members): Posted => checked(members, payloadBytesMax, traceparent);
  const whole = readMembers(cursor, (_, name) => (name === "messages" ? readBatch(cursor, check) : takeMember(cursor, name)));
  expectEnd(cursor);
  if (whole === null) throw new MakegoodError("invalid_message", "the body must be a JSON object");
  const { fields, twice } = whole;
  const batch = fields.get("messages") as Posted[] | undefined;
  if (batch === undefined) return check(whole);
  if (twice.includes("messages")) throw new MakegoodError("invalid_message", "`messages` is given twice");
  fields.delete("messages");
  if (fields.size > 0)
    throw new MakegoodError("invalid_message", `a body with \`messages\` has no other field: ${named([...fields.keys()])}`);
  if (batch.length === 0) throw new MakegoodError("invalid_message", "`messages` is empty");
  return batch;
}

function readBatch(cursor: Cursor, check: (members: Members) => Posted): Posted[] {
  const posted: Posted[] = [];
  const isArray = eachElement(cursor, (index) => {
    const { batchMessagesMax: limit } = LIMITS;
    if (index >= limit) throw new MakegoodError("invalid_message", `a batch may have at most ${limit} messages`, { limit });
    try {
      const members = readMembers(cursor, takeMember);
      posted.push(members ? check(members) : { faults: [invalid("a message must be a JSON object")] });
    } catch (error) {
      // What is malformed inside an element is that element's fault; nothing after it can be read.
      if (!isMakegoodError(error)) throw error;
      throw new MakegoodError(error.code, error.message, { ...error.detail, index });
    }
  });
  if (!isArray) throw new MakegoodError("invalid_message", "`messages` must be an array");
  return posted;
}

function takeMember(cursor: Cursor, name: string): unknown {
  if (name !== "payload") return JSON.parse(takeValue(cursor));
  cursor.code = "invalid_payload";
  const payload = takeValue(cursor);
  cursor.code = "invalid_message";
  return payload;
}

function checked({ fields, twice }: Members, payloadBytesMax: number, traceparent: string | null): Posted {
  const faults = twice.map((name) => invalid(`\`${name.slice(0, 100)}\` is given twice`));
  const unknown: string[] = [];
  for (const [name, value] of fields) {
    if (!FIELDS.has(name) && name !== "payload") unknown.push(name);
    // Null is as good as absent, but for the topic.
    const fault = value === null && name !== "topic" ? null : faultOf(name, value);
    if (fault !== null) faults.push(fault);
  }
  if (!fields.has("topic")) faults.push(faultOf("topic", undefined) as ProblemItem);
  if (unknown.length > 0) faults.unshift(invalid(`unknown ${unknown.length > 1 ? "fields" : "field"} ${named(unknown)}`));
  const payloadText = fields.get("payload") as string | undefined;
  if (payloadText === undefined) faults.push(invalid("`payload` is missing"));
  else if (Buffer.byteLength(payloadText) > payloadBytesMax)
    faults.push({ code: "payload_too_large", detail: `the payload may have at most ${payloadBytesMax} bytes` });
  if (faults.length > 0) return { faults };
  const message = {
    topic: fields.get("topic"),
    payloadText,
    key: fields.get("key") ?? null,
    tenantId: fields.get("tenant_id") ?? null,
    orderingKey: fields.get("ordering_key") ?? null,
    delayMs: fields.get("delay_ms") ?? 0,
    priority: fields.get("priority") ?? 0,
    traceparent,
    [CHECKED]: true,
  };
  return { message: message as NonNullable<Posted["message"]>, faults };
}

function named(names: readonly string[]): string {
  const shown = names.slice(0, 10).map((name) => JSON.stringify(name.slice(0, 100)));
  return shown.join(", ");
}
