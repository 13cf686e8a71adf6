/**
 * The addresses of redrives: many dead letters put back as one durable, rated operation.
 */
import { z } from "zod";
import { LIMITS } from "../../message/limits.ts";
import { ITEM_STATES, REDRIVE_STATUSES } from "../../recovery/redrive/redrive.ts";
import { REDRIVE_LIMITS } from "../../recovery/redrive/request.ts";
import { body, lists, okOrCreated, optionalBody, route, routes, shows } from "../route.ts";
import * as v from "../values.ts";

const { canaryMax, ratePerSecondMin, ratePerSecondMax, messagesMax, delayMsMax } = REDRIVE_LIMITS;
const rate = () => v.number(ratePerSecondMin, ratePerSecondMax);

/** How carefully a redrive goes, also that of an execution. What is absent is left to the defaults; the ranges are the engine's. */
export const redrivePlan = v.optionals({
  canary: v.integer(0, canaryMax).describe("so many first, the rest once they have healed; 0: no canary"),
  rate_per_second: rate().describe("messages a second at most"),
  ramp_from: rate().describe("messages a second to begin with; doubles each second"),
  failure_share_max: v.number(0, 1).describe("stop by itself when more than this share failed; 1: never"),
  failure_min: v.integer(1, messagesMax).describe("and at least so many failed"),
  delay_ms: v.integer(0, delayMsMax).describe("send nothing before so many milliseconds have passed"),
});

/** How many messages the person saw: refused when the list is another size. */
export const confirm = () =>
  v.optional(v.integer(0, messagesMax).describe("how many messages were seen: refused if it is another number"));

const counts = z.strictObject(v.integers("selected", "waiting", "sent", "healed", "failed", "skipped"));

export const redrive = v.shape("Redrive", {
  redrive_id: z.string(),
  status: z.enum(REDRIVE_STATUSES),
  ...v.texts("mode", "reason", "actor"),
  ...v.textsOrNull("status_reason", "action", "idempotency_key"),
  candidate_id: z.int().nullable(),
  select: z.record(z.string(), z.unknown()),
  plan: z.unknown(),
  counts,
  progress: z.number().describe("the share of the list whose ending is known, 0 to 1"),
  version: z.int(),
  created_at: v.instant(),
  ...v.instantsOrNull("started_at", "ended_at"),
});

export const redriveItem = v.shape("RedriveItem", {
  n: z.int(),
  message_id: z.string(),
  ...v.integers("generation", "revision"),
  group_id: z.int().nullable(),
  state: z.enum(ITEM_STATES),
  ...v.textsOrNull("reason", "carrier_id"),
  ...v.instantsOrNull("sent_at", "ended_at"),
});

const CHOICES = ["group_id", "topic", "tenant_id", "error_code", "ids"] as const;

const select = v
  .object(
    v.optionals({
      group_id: v.numberId(),
      topic: v.topicName(),
      tenant_id: v.line(LIMITS.tenantIdBytesMax),
      error_code: v.line(LIMITS.errorBytesMax),
      ids: v.list(v.uuid(), REDRIVE_LIMITS.idsMax, "message ids").describe("exactly these messages"),
      seen: v.text().describe("only what was seen: the mark of a blast radius"),
      limit: v.integer(1, REDRIVE_LIMITS.messagesMax).describe("so many at most, the oldest first"),
    }),
    "is missing: say which dead letters, such as {group_id: 7}",
  )
  .refine((given) => CHOICES.some((name) => given[name] !== undefined), {
    error: `must name a ${CHOICES.slice(0, -1).join(", ")} or ids: nothing selects everything`,
  })
  .meta({ id: "RedriveSelect" });

/** What heals after it is not credited to the action alone. */
export const afterRepair = () =>
  v
    .line(LIMITS.reasonBytesMax)
    .describe("what was repaired before, such as 'renewed the key': what heals now is not credited to the action alone");

const newRedrive = v
  .object({
    select,
    reason: v.reason(),
    confirm: confirm(),
    ...v.optionals({
      mode: v.oneOf(["replay", "new_key"]),
      idempotency_key: v.line(LIMITS.keyBytesMax).describe("two starts with one key are one redrive"),
      dry_run: v.flag().describe("only freeze the list and show it; resuming it begins"),
      generation_max: v.integer(1, REDRIVE_LIMITS.generationCapMax).describe("also what was replayed so often already"),
      elsewhere: v.flag().describe("functions of other processes deliver these topics: insist on no sink in this one"),
      after_repair: afterRepair(),
    }),
    ...redrivePlan,
  })
  .meta({ id: "NewRedrive" });

const change = optionalBody("recovery", v.object(v.versioned()));
const resume = optionalBody("recovery", v.object({ ...v.versioned(), after_repair: v.optional(afterRepair()) }));
const moves = (summary: string) => route("operate", summary, redrive, { body: change, errors: ["wrong_state"] });

export const REDRIVE_ROUTES = routes({
  listRedrives: lists("Redrives, newest first", redrive, { status: v.oneOf(REDRIVE_STATUSES) }),
  startRedrive: route("operate", "Put many dead letters back; twice under one key is one redrive", okOrCreated(redrive), {
    headers: ["idempotency-key"],
    body: body("recovery", newRedrive),
    errors: ["nothing_selected", "nobody_delivers", "confirmation_needed", "key_conflict", "group_not_found"],
  }),
  getRedrive: shows("One redrive and how far it is", redrive),
  listRedriveItems: lists("What became of each message of a redrive", redriveItem, { state: v.oneOf(ITEM_STATES) }),
  pauseRedrive: moves("Send no more until it is resumed; what is under way goes on"),
  resumeRedrive: route("operate", "Go on, or begin what was only planned", redrive, { body: resume, errors: ["wrong_state"] }),
  cancelRedrive: moves("End it; what was not sent stays a dead letter"),
});
