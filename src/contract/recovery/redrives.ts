/** The addresses of redrives: many dead letters put back as one durable, rated operation. */
import { z } from "zod";
import { LIMITS } from "../../message/limits.ts";
import { ITEM_STATES, REDRIVE_STATUSES, VERDICTS } from "../../recovery/redrive/redrive.ts";
import { PERSONS_MODES, REDRIVE_LIMITS } from "../../recovery/redrive/request.ts";
import { body, lists, okOrCreated, route, routes, shows, takes } from "../route.ts";
import * as v from "../values.ts";
import { groupName, matchedBy } from "./groups.ts";

const { canaryMax, ratePerSecondMin, ratePerSecondMax, messagesMax, delayMsMax } = REDRIVE_LIMITS;
const rate = () => v.number(ratePerSecondMin, ratePerSecondMax);

export const redrivePlan = v.optionals({
  canary: v.integer(0, canaryMax).describe("so many of each group first, the rest of it once they have healed; 0: no canary"),
  rate_per_second: rate().describe("messages a second at most"),
  ramp_from: rate().describe("messages a second to begin with; doubles each second"),
  failure_share_max: v.number(0, 1).describe("a group stops by itself when more than this share of it failed; 1: never"),
  failure_min: v.integer(1, messagesMax).describe("and at least so many failed"),
  concurrency: v.integer(1, messagesMax).describe("so many at most on their way at once; absent: as many as the rate brings"),
  delay_ms: v.integer(0, delayMsMax).describe("send nothing before so many milliseconds have passed"),
});

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
  rate_per_second: z.number().describe("messages a second that were sent lately"),
  eta_seconds: z.int().nullable().describe("until the last one is sent, at this rate; null: not known"),
  runner: z.string().nullable().describe("the process that carries it out now; null: none does"),
  version: z.int(),
  created_at: v.instant(),
  ...v.instantsOrNull("started_at", "ended_at"),
});

const redriveGroup = v.shape("RedriveGroup", {
  group_id: z.int().nullable(),
  topic: z.string(),
  error_code: z.string().nullable(),
  verdict: z.enum(VERDICTS).nullable().describe("what its canary says of it; null: not known yet"),
  reason: z.string().nullable(),
  ...counts.shape,
});

const next = { next_probe_at: v.instant() };
const heldReceiver = v.shape("HeldReceiver", { topic: z.string(), ...v.textsOrNull("tenant_id", "reason"), ...next });

export const redriveDetail = v.shape("RedriveDetail", {
  ...redrive.shape,
  groups: z.array(redriveGroup).describe("each is judged by itself; those that failed first, at most 50"),
  verdicts: z.strictObject(v.integers(...VERDICTS, "undecided")).describe("how many groups have which verdict"),
  left_out: z.record(z.string(), z.int()).describe("how many are left alone, by reason: held, carried, moved_on, …"),
  held_receivers: z.array(heldReceiver).describe("receivers that are down: their breakers hold the messages"),
});

export const redriveItem = v.shape("RedriveItem", {
  ...v.integers("n", "generation", "revision"),
  message_id: z.string(),
  group_id: z.int().nullable(),
  state: z.enum(ITEM_STATES),
  ...v.textsOrNull("reason", "carrier_id"),
  ...v.instantsOrNull("sent_at", "ended_at"),
});

const CHOICES = [
  "group_id",
  "failure_match_id",
  "group_ids",
  "topic",
  "tenant_id",
  "error_code",
  "since",
  "until",
  "redrive_id",
  "ids",
] as const;

const select = v
  .object(
    v.optionals({
      group_id: v.numberId(),
      ...matchedBy,
      group_ids: v.list(groupName(), REDRIVE_LIMITS.groupsMax, "names of groups").describe("in one of these groups"),
      topic: v.topicName(),
      tenant_id: v.line(LIMITS.tenantIdBytesMax),
      error_code: v.line(LIMITS.errorBytesMax),
      since: v.fixedMoment().describe("died at or after this moment"),
      until: v.fixedMoment().describe("died before this moment"),
      redrive_id: v.uuid().describe("for mode reopen: what this redrive resolved or discarded"),
      include_held: v.flag().describe("also what is held for a person"),
      ids: v.list(v.uuid(), REDRIVE_LIMITS.idsMax, "message ids").describe("exactly these messages"),
      seen: v.text().describe("only what was seen: the mark of a blast radius"),
      limit: v.integer(1, REDRIVE_LIMITS.messagesMax).describe("so many at most, the oldest first"),
    }),
    "is missing: say which dead letters, such as {group_id: 7}",
  )
  .refine((given) => CHOICES.some((name) => given[name] !== undefined), {
    error: `must name a ${CHOICES.slice(0, -1).join(", ")} or ids: nothing selects everything`,
  })
  .refine(({ group_id, failure_match_id }) => group_id === undefined || failure_match_id === undefined, {
    error: "must name the group by group_id or by failure_match_id, not by both",
  })
  .meta({ id: "RedriveSelect" });

const REPAIRED = "what was repaired before, such as 'renewed the key': what heals now is not credited to the action alone";
export const afterRepair = () => v.line(LIMITS.reasonBytesMax).describe(REPAIRED);

const newRedrive = v
  .object({
    select,
    reason: v.reason(),
    confirm: confirm(),
    ...v.optionals({
      mode: v.oneOf(PERSONS_MODES).describe("what is done to each; reopen undoes a resolve or discard"),
      idempotency_key: v.line(LIMITS.keyBytesMax).describe("two starts with one key are one redrive"),
      dry_run: v.flag().describe("only freeze the list and show it; resuming it begins"),
      generation_max: v.integer(1, REDRIVE_LIMITS.generationCapMax).describe("also what was replayed so often already"),
      elsewhere: v.flag().describe("functions of other processes deliver these topics: insist on no sink in this one"),
      after_repair: afterRepair(),
    }),
    ...redrivePlan,
  })
  .meta({ id: "NewRedrive" });

const NOT_STARTED = [
  ...["nothing_selected", "nobody_delivers", "confirmation_needed", "key_conflict", "group_not_found"],
  ...["redrive_not_found", "wrong_state"],
] as const;
const resume = v.object({ ...v.versioned(), after_repair: v.optional(afterRepair()) });
const moves = <S extends z.ZodType>(summary: string, schema: S) =>
  takes("operate", summary, redriveDetail, body("recovery", schema), "wrong_state");

export const REDRIVE_ROUTES = routes({
  listRedrives: lists("Redrives, newest first", redrive, { status: v.oneOf(REDRIVE_STATUSES) }),
  startRedrive: route("operate", "Put many dead letters back; twice under one key is one redrive", okOrCreated(redriveDetail), {
    headers: ["idempotency-key"],
    body: body("recovery", newRedrive),
    errors: NOT_STARTED,
    // Some modes end messages.
    effect: "destroys",
  }),
  getRedrive: shows("One redrive, how far it is and why it stands as it does", redriveDetail),
  listRedriveItems: lists("What became of each message of a redrive", redriveItem, { state: v.oneOf(ITEM_STATES) }),
  pauseRedrive: moves("Send no more until it is resumed; what is under way goes on", v.object(v.versioned())),
  resumeRedrive: moves("Go on, or begin what was only planned", resume),
  cancelRedrive: moves("End it; what was not sent stays a dead letter", v.object(v.versioned())),
});
