/**
 * The addresses of redrives: many dead letters put back as one durable, rated operation.
 */
import { z } from "zod";
import { LIMITS } from "../../message/limits.ts";
import { REDRIVE_LIMITS } from "../../recovery/redrive/request.ts";
import { ITEM_STATES, REDRIVE_STATUSES } from "../../store/redrive.ts";
import { BODY_BYTES } from "../body-bytes.ts";
import { routes } from "../route.ts";
import * as v from "../values.ts";
import { confirm, generationMax, limit, redrivePlan } from "./redrive-plan.ts";

export const redrive = z
  .strictObject({
    redrive_id: z.string(),
    status: z.enum(REDRIVE_STATUSES),
    status_reason: z.string().nullable(),
    mode: z.string(),
    reason: z.string(),
    actor: z.string(),
    action: z.string().nullable(),
    candidate_id: z.int().nullable(),
    idempotency_key: z.string().nullable(),
    select: z.record(z.string(), z.unknown()),
    plan: z.unknown(),
    counts: z.strictObject({
      selected: z.int(),
      waiting: z.int(),
      sent: z.int(),
      healed: z.int(),
      failed: z.int(),
      skipped: z.int(),
    }),
    progress: z.number().describe("the share of the list whose ending is known, 0 to 1"),
    version: z.int(),
    created_at: v.instant(),
    started_at: v.instant().nullable(),
    ended_at: v.instant().nullable(),
  })
  .meta({ id: "Redrive" });

export const redriveItem = z
  .strictObject({
    n: z.int(),
    message_id: z.string(),
    generation: z.int(),
    revision: z.int(),
    group_id: z.int().nullable(),
    state: z.enum(ITEM_STATES),
    reason: z.string().nullable(),
    carrier_id: z.string().nullable(),
    sent_at: v.instant().nullable(),
    ended_at: v.instant().nullable(),
  })
  .meta({ id: "RedriveItem" });

const CHOICES = ["group_id", "topic", "tenant_id", "error_code", "ids"] as const;

const select = v
  .object(
    {
      group_id: v.optional(v.numberId()),
      topic: v.optional(v.topicName()),
      tenant_id: v.optional(v.line(LIMITS.tenantIdBytesMax)),
      error_code: v.optional(v.line(LIMITS.errorBytesMax)),
      ids: v.optional(v.list(v.uuid(), REDRIVE_LIMITS.idsMax, "message ids")).describe("exactly these messages"),
      seen: v.optional(v.text()).describe("only what was seen: the mark of a blast radius"),
      limit: limit(),
    },
    { missing: "is missing: say which dead letters, such as {group_id: 7}" },
  )
  .check((context) => {
    if (CHOICES.some((name) => context.value[name] !== undefined)) return;
    const message = `must name a ${CHOICES.slice(0, -1).join(", ")} or ids: nothing selects everything`;
    context.issues.push({ code: "custom", message, input: context.value });
  })
  .meta({ id: "RedriveSelect" });

const newRedrive = v
  .object({
    select,
    mode: v.optional(v.oneOf(["replay", "new_key"])),
    reason: v.reason(),
    idempotency_key: v.optional(v.line(LIMITS.keyBytesMax)).describe("two starts with one key are one redrive"),
    dry_run: v.optional(v.flag()).describe("only freeze the list and show it; resuming it begins"),
    confirm: confirm(),
    generation_max: generationMax(),
    elsewhere: v.optional(v.flag()).describe("functions of other processes deliver these topics: insist on no sink in this one"),
    ...redrivePlan,
  })
  .meta({ id: "NewRedrive" });

const GONE = ["needs_postgres", "redrive_not_found"] as const;
const ACTOR = ["x-actor-type"] as const;

const moved = (summary: string) =>
  ({
    summary,
    permission: "operate",
    headers: ["if-match", ...ACTOR],
    body: {
      schema: v.object({ version: v.ifVersion(), reason: v.why() }),
      bytesMax: BODY_BYTES.recovery,
      invalid: "invalid_request",
      optional: true,
    },
    answers: { 200: redrive },
    errors: [...GONE, "version_conflict", "wrong_state", "invalid_request"],
  }) as const;

export const REDRIVE_ROUTES = routes({
  listRedrives: {
    summary: "Redrives, newest first",
    permission: "read",
    headers: ACTOR,
    query: v.object({ ...v.page(), status: v.optional(v.oneOf(REDRIVE_STATUSES)) }),
    answers: { 200: v.pageOf(redrive) },
    errors: ["needs_postgres", "invalid_query"],
  },
  startRedrive: {
    summary: "Put many dead letters back; twice under one key is one redrive",
    permission: "operate",
    headers: ["idempotency-key", ...ACTOR],
    body: { schema: newRedrive, bytesMax: BODY_BYTES.recovery, invalid: "invalid_request" },
    answers: { 200: redrive, 201: redrive },
    errors: [
      "needs_postgres",
      "invalid_request",
      "nothing_selected",
      "nobody_delivers",
      "confirmation_needed",
      "key_conflict",
      "group_not_found",
    ],
  },
  getRedrive: {
    summary: "One redrive and how far it is",
    permission: "read",
    headers: ACTOR,
    answers: { 200: redrive },
    errors: GONE,
  },
  listRedriveItems: {
    summary: "What became of each message of a redrive",
    permission: "read",
    headers: ACTOR,
    query: v.object({ ...v.page(), state: v.optional(v.oneOf(ITEM_STATES)) }),
    answers: { 200: v.pageOf(redriveItem) },
    errors: [...GONE, "invalid_query"],
  },
  pauseRedrive: moved("Send no more until it is resumed; what is under way goes on"),
  resumeRedrive: moved("Go on, or begin what was only planned"),
  cancelRedrive: moved("End it; what was not sent stays a dead letter"),
});
