/** The addresses of messages. Bodies with a payload are read by a scanner (I8), and a test compares both. */
import { z } from "zod";
import { LIMITS } from "../message/limits.ts";
import { RESOLUTIONS, STATUSES } from "../message/message.ts";
import { body, created, exactBody, lists, okOrCreated, type ProblemCode, route, routes, shows, takes } from "./route.ts";
import * as v from "./values.ts";

/** With payloads a page may be large: a hundred of a mebibyte each is as much as one answer should be. */
export const PAYLOAD_PAGE_MAX = 100;

export const hold = v.shape("Hold", { code: z.string(), reason: z.string() });

export const message = v.shape("Message", {
  ...v.texts("id", "topic"),
  ...v.textsOrNull("tenant_id", "key", "ordering_key"),
  status: z.enum(STATUSES),
  resolution: z.enum(RESOLUTIONS).nullable(),
  ...v.integers("priority", "attempts", "generation", "revision"),
  held_reason: z.string().nullable().describe("a word: what keeps it from being attempted"),
  pending_reason: hold.nullable().describe("why it is pending: what holds it, when it is due, or that it waits for its turn"),
  created_at: v.instant(),
  ...v.instantsOrNull("next_attempt_at", "died_at"),
  ...v.textsOrNull("last_error", "last_code", "traceparent"),
  schema_version: z.int().nullable(),
});

export const attempt = v.shape("Attempt", {
  attempt: z.int(),
  outcome: z.string(),
  counted: z.boolean(),
  at: v.instant(),
  duration_ms: z.number().nullable(),
  ...v.textsOrNull("code", "error"),
  ...v.instantsOrNull("next_attempt_at"),
});

const why = { reason: z.string().nullable() };
export const intervention = v.shape("Intervention", { at: v.instant(), ...v.texts("actor", "action"), ...why });

const payload = z.unknown().describe("JSON, kept and delivered byte for byte");
/** Any JSON, null too; it must be there. */
const given = payload.refine((value) => value !== undefined, { error: "is missing" });
const withPayload = message.extend({ payload }).meta({ id: "MessageWithPayload" });

const origin = { ...v.fields(z.string().nullish(), "replay_of", "redrive_id"), edited: z.boolean().optional() };

export const messageDetail = withPayload
  .extend({ ...origin, timeline: z.array(attempt), provenance: z.array(intervention) })
  .meta({ id: "MessageDetail" });

const inserted = z.boolean().describe("false: the key was there already, with the same payload");
export const accepted = v.shape("Accepted", { id: z.string(), inserted });

export const newMessage = v
  .object({
    topic: v.topicName(),
    payload: given,
    ...v.optionals({
      key: v.keyText(LIMITS.keyBytesMax).describe("the effect's identity: the same key is the same message"),
      tenant_id: v.keyText(LIMITS.tenantIdBytesMax).describe("whose message it is"),
      ordering_key: v.keyText(LIMITS.orderingKeyBytesMax).describe("messages with the same one are delivered in order"),
      delay_ms: v.integer(0, LIMITS.delayMsMax).describe("not before this many milliseconds from now"),
      priority: v.integer(LIMITS.priorityMin, LIMITS.priorityMax).describe("-100 to 100, higher first"),
    }),
  })
  .meta({ id: "NewMessage" });

const messages = v.list(newMessage, LIMITS.batchMessagesMax, "messages");
export const newMessages = v.object({ messages }).meta({ id: "NewMessages" });

const revision = v.optional(v.version().describe("refuse if the message has moved on since"));
const asked = { reason: v.reason(), revision };
const force = { force: v.optional(v.flag().describe("also while a copy of it is on its way to another receiver")) };
export const editBody = v
  .object({ ...asked, ...force, payload: given, key: v.optional(v.keyText(LIMITS.keyBytesMax)) })
  .meta({ id: "MessageEdit" });

const REFUSED = ["wrong_state", "revision_conflict"] as const;

const intervenes = <const S extends z.core.$ZodShape>(summary: string, fields: S, ...errors: ProblemCode[]) =>
  takes("operate", summary, withPayload, body("intervention", v.object({ ...asked, ...fields })), ...REFUSED, ...errors);
/** No other call opens a message again that a person has closed. */
const closes = (summary: string) => ({ ...intervenes(summary, {}), effect: "destroys" }) as const;

const taken = z.union([accepted, z.strictObject({ data: z.array(accepted) })]);
const CONTRADICTED = ["payload_rejected_by_schema", "key_conflict"] as const;
const NOT_EDITED = [...CONTRADICTED, "needs_postgres", "nobody_delivers", "carried"] as const;

const acknowledged = z.strictObject({ acknowledged: z.literal(true) });
const delay_ms = v.integer(0, LIMITS.delayMsMax).describe("milliseconds from now");
const listed = {
  topic: v.topicName(),
  status: v.oneOf(STATUSES),
  resolution: v.oneOf(RESOLUTIONS),
  ...v.fields(v.text(), "tenant_id", "key"),
  payload: v.flag().describe("with payloads"),
};
const LIST = "Messages, newest first, by topic, status, resolution, tenant or key";
const REPLAY = "Put a dead letter or a held message back, due now, with a new budget of attempts";
const EDIT = "Send a dead letter again with another payload: a new message, and the old one is resolved";
const LOSS = "Say that one knows what the store lost, so that health stops saying it";

export const MESSAGE_ROUTES = routes({
  listMessages: lists(LIST, z.union([message, withPayload]), listed, ["invalid_message"]),
  enqueue: route("accept", "Accept one message, or a batch of up to a thousand: all of them or none", okOrCreated(taken), {
    headers: ["idempotency-key"],
    body: exactBody("messages", z.union([newMessage, newMessages])),
    errors: [...CONTRADICTED, "invalid_topic", "payload_too_large", "unknown_topic", "batch_refused", "store_full"],
  }),
  getMessage: shows("One message with its payload, every attempt and what people did to it", messageDetail),
  getPayload: route("read", "The payload of a message, as the exact bytes that were accepted", { type: "application/json" }),
  replayMessage: intervenes(REPLAY, force, "carried", "nobody_delivers"),
  resolveMessage: closes("Close a dead letter that was taken care of by other means"),
  discardMessage: closes("Close a dead letter, or take back a pending message: it will not be delivered"),
  cancelMessage: closes("Take a pending message back: it is not attempted any more"),
  rescheduleMessage: intervenes("Move the moment that a pending message is due", { delay_ms }),
  editMessage: route("operate", EDIT, created(withPayload.extend(origin)), {
    headers: ["x-actor-type"],
    body: exactBody("edit", editBody),
    errors: [...REFUSED, "invalid_message", ...NOT_EDITED],
  }),
  acknowledgeLoss: takes("operate", LOSS, acknowledged, body("intervention", v.object({ reason: v.reason() }))),
});
