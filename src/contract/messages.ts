/**
 * The addresses of messages: accept, list, show, and what people do to them. Payloads travel as the exact text that they are (I8), so the
 * bodies that carry one are read by a scanner; the schemas say the same, and a test holds one against the other.
 */
import { z } from "zod";
import { LIMITS } from "../message/limits.ts";
import { RESOLUTIONS, STATUSES } from "../message/message.ts";
import { BODY_BYTES } from "./body-bytes.ts";
import { routes } from "./route.ts";
import * as v from "./values.ts";

/** With payloads a page may be large: a hundred of a mebibyte each is as much as one answer should be. */
export const PAYLOAD_PAGE_MAX = 100;

export const hold = z.strictObject({ code: z.string(), reason: z.string() }).meta({ id: "Hold" });

/** A message without its payload. */
export const message = z
  .strictObject({
    id: z.string(),
    topic: z.string(),
    tenant_id: z.string().nullable(),
    key: z.string().nullable(),
    ordering_key: z.string().nullable(),
    priority: z.int(),
    status: z.enum(STATUSES),
    attempts: z.int(),
    generation: z.int(),
    revision: z.int(),
    resolution: z.enum(RESOLUTIONS).nullable(),
    held_reason: z.string().nullable().describe("a word: what keeps it from being attempted"),
    pending_reason: hold.nullable().describe("why it is pending: what holds it, when it is due, or that it waits for its turn"),
    next_attempt_at: v.instant().nullable(),
    created_at: v.instant(),
    died_at: v.instant().nullable(),
    last_error: z.string().nullable(),
    last_code: z.string().nullable(),
    schema_version: z.int().nullable(),
    traceparent: z.string().nullable(),
  })
  .meta({ id: "Message" });

export const attempt = z
  .strictObject({
    attempt: z.int(),
    outcome: z.string(),
    counted: z.boolean(),
    at: v.instant(),
    duration_ms: z.number().nullable(),
    code: z.string().nullable(),
    error: z.string().nullable(),
    next_attempt_at: v.instant().nullable(),
  })
  .meta({ id: "Attempt" });

export const intervention = z
  .strictObject({ at: v.instant(), actor: z.string(), action: z.string(), reason: z.string().nullable() })
  .meta({ id: "Intervention" });

const payload = z.unknown().describe("JSON, kept and delivered byte for byte");
/** Any JSON, null too; it must be there. */
const given = payload.refine((value) => value !== undefined, { error: "is missing" });
const withPayload = message.extend({ payload }).meta({ id: "MessageWithPayload" });

/** Where a message that was replayed under a new key, or edited, comes from. */
const origin = {
  replay_of: z.string().nullable().optional(),
  redrive_id: z.string().nullable().optional(),
  edited: z.boolean().optional(),
};

export const messageDetail = withPayload
  .extend({ ...origin, timeline: z.array(attempt), provenance: z.array(intervention) })
  .meta({ id: "MessageDetail" });

export const accepted = z
  .strictObject({ id: z.string(), inserted: z.boolean().describe("false: the key was there already, with the same payload") })
  .meta({ id: "Accepted" });

/** What a message is made of; `topic` and `payload` must be there. */
export const newMessage = v
  .object({
    topic: v.topicName(),
    payload: given,
    key: v.optional(v.keyText(LIMITS.keyBytesMax)).describe("the effect's identity: the same key is the same message"),
    tenant_id: v.optional(v.keyText(LIMITS.tenantIdBytesMax)).describe("whose message it is"),
    ordering_key: v.optional(v.keyText(LIMITS.orderingKeyBytesMax)).describe("messages with the same one are delivered in order"),
    delay_ms: v.optional(v.integer(0, LIMITS.delayMsMax)).describe("not before this many milliseconds from now"),
    priority: v.optional(v.integer(LIMITS.priorityMin, LIMITS.priorityMax)).describe("-100 to 100, higher first"),
  })
  .meta({ id: "NewMessage" });

export const newMessages = v
  .object({ messages: v.list(newMessage, LIMITS.batchMessagesMax, "messages") })
  .meta({ id: "NewMessages" });

const asked = { reason: v.reason(), revision: v.optional(v.version()).describe("refuse if the message has moved on since") };
const force = () => v.optional(v.flag()).describe("also while a copy of it is on its way to another receiver");
export const editBody = v
  .object({ ...asked, payload: given, key: v.optional(v.keyText(LIMITS.keyBytesMax)), force: force() })
  .meta({ id: "MessageEdit" });
const interventionBody = <S extends z.ZodType>(schema: S) =>
  ({ schema, bytesMax: BODY_BYTES.intervention, invalid: "invalid_message" }) as const;
const REFUSED = ["message_not_found", "wrong_state", "revision_conflict", "invalid_message"] as const;

export const MESSAGE_ROUTES = routes({
  listMessages: {
    summary: "Messages, newest first, by topic, status, resolution, tenant or key",
    permission: "read",
    query: v.object({
      ...v.page(),
      topic: v.optional(v.topicName()),
      status: v.optional(v.oneOf(STATUSES)),
      resolution: v.optional(v.oneOf(RESOLUTIONS)),
      tenant_id: v.optional(v.text()),
      key: v.optional(v.text()),
      payload: v.optional(v.flag()).describe("with payloads"),
    }),
    answers: { 200: v.pageOf(z.union([message, withPayload])) },
    errors: ["invalid_query", "invalid_message"],
  },
  enqueue: {
    summary: "Accept one message, or a batch of up to a thousand: all of them or none",
    permission: "accept",
    headers: ["idempotency-key"],
    body: {
      schema: z.union([newMessage, newMessages]),
      bytesMax: BODY_BYTES.messages,
      invalid: "invalid_message",
      exact: true,
    },
    answers: {
      200: z.union([accepted, z.strictObject({ data: z.array(accepted) })]),
      201: z.union([accepted, z.strictObject({ data: z.array(accepted) })]),
    },
    errors: [
      "invalid_message",
      "invalid_payload",
      "invalid_topic",
      "payload_too_large",
      "payload_rejected_by_schema",
      "key_too_long",
      "key_conflict",
      "unknown_topic",
      "batch_refused",
      "store_full",
      "store_unavailable",
    ],
  },
  getMessage: {
    summary: "One message with its payload, every attempt and what people did to it",
    permission: "read",
    answers: { 200: messageDetail },
    errors: ["message_not_found"],
  },
  getPayload: {
    summary: "The payload of a message, as the exact bytes that were accepted",
    permission: "read",
    answers: { 200: { type: "application/json" } },
    errors: ["message_not_found"],
  },
  replayMessage: {
    summary: "Put a dead letter or a held message back, due now, with a new budget of attempts",
    permission: "operate",
    body: interventionBody(v.object({ ...asked, force: force() })),
    answers: { 200: withPayload },
    errors: [...REFUSED, "carried", "nobody_delivers"],
  },
  resolveMessage: {
    summary: "Close a dead letter that was taken care of by other means",
    permission: "operate",
    body: interventionBody(v.object(asked)),
    answers: { 200: withPayload },
    errors: REFUSED,
  },
  discardMessage: {
    summary: "Close a dead letter, or take back a pending message: it will not be delivered",
    permission: "operate",
    body: interventionBody(v.object(asked)),
    answers: { 200: withPayload },
    errors: REFUSED,
  },
  cancelMessage: {
    summary: "Take a pending message back: it is not attempted any more",
    permission: "operate",
    body: interventionBody(v.object(asked)),
    answers: { 200: withPayload },
    errors: REFUSED,
  },
  rescheduleMessage: {
    summary: "Move the moment that a pending message is due",
    permission: "operate",
    body: interventionBody(v.object({ ...asked, delay_ms: v.integer(0, LIMITS.delayMsMax).describe("milliseconds from now") })),
    answers: { 200: withPayload },
    errors: REFUSED,
  },
  editMessage: {
    summary: "Send a dead letter again with another payload: a new message, and the old one is resolved",
    permission: "operate",
    body: {
      schema: editBody,
      bytesMax: BODY_BYTES.edit,
      invalid: "invalid_request",
      exact: true,
    },
    answers: { 201: withPayload.extend(origin) },
    errors: [
      ...REFUSED,
      "needs_postgres",
      "nobody_delivers",
      "invalid_request",
      "invalid_payload",
      "payload_rejected_by_schema",
      "key_conflict",
      "carried",
    ],
  },
  acknowledgeLoss: {
    summary: "Say that one knows what the store lost, so that health stops saying it",
    permission: "operate",
    body: interventionBody(v.object({ reason: v.reason() })),
    answers: { 200: z.strictObject({ acknowledged: z.literal(true) }) },
    errors: ["invalid_message"],
  },
});
