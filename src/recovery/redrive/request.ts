/** What a redrive is asked for: which messages, what is done to each, and how carefully. A schema is both the check and the type. */
import { z } from "zod";
import { MakegoodError } from "../../message/errors.ts";
import { readObject } from "../../message/json.ts";
import { LIMITS } from "../../message/limits.ts";
import { CARRIERS } from "../../message/topic.ts";
import { isTopicName, isWellFormed } from "../../message/validate.ts";
import { isUuid } from "../../platform/ids.ts";
import { checked, flag, list, number, object, oneOf, parse } from "../rules/schema.ts";
import { type RedriveMode, type RedriveSelect, sends } from "./redrive.ts";

export const REDRIVE_LIMITS = {
  messagesMax: 1_000_000,
  /** More than this needs `confirm`. */
  messagesUnconfirmed: 10_000,
  ratePerSecondMax: 5_000,
  ratePerSecondMin: 0.01,
  generationMax: 10,
  idsMax: 10_000,
  canaryMax: 10_000,
  delayMsMax: 24 * 3_600_000,
  generationCapMax: 30_000,
  /** Above all generations: no cap. */
  generationNone: 32_767,
  groupsMax: 1_000,
} as const;
const { messagesMax, ratePerSecondMin, ratePerSecondMax, generationCapMax } = REDRIVE_LIMITS;

const whole = (min: number, max: number) => number(min, max, "whole");
const that = (fits: (value: string) => boolean, otherwise: string) =>
  checked(z.string(otherwise), (value) => (fits(value) ? null : otherwise));
const text = (bytesMax: number) =>
  that(
    (value) => value.trim() !== "" && Buffer.byteLength(value) <= bytesMax && !value.includes("\0") && isWellFormed(value),
    `must be a text that is not empty, of at most ${bytesMax} bytes, without NUL or half a surrogate pair`,
  );
const uuid = that(isUuid, "must be a UUID in lower case");
const moment = z.date("must be a moment: a Date");

const PLAN = z.object({
  /** So many first; the rest follows once these are known to have healed. 0: no canary. */
  canary: whole(0, REDRIVE_LIMITS.canaryMax),
  /** Messages a second once the ramp is done. */
  ratePerSecond: number(ratePerSecondMin, ratePerSecondMax),
  /** The rate doubles each second from here on. */
  rampFrom: number(ratePerSecondMin, ratePerSecondMax),
  /** Stops by itself when more than this share of those whose ending is known failed; 1: never. */
  failureShareMax: number(0, 1),
  /** Not before so many are known (the canary counts as soon as it is whole). */
  failureMin: whole(1, messagesMax),
  /** Nothing is sent before so long after it was started. */
  delayMs: whole(0, REDRIVE_LIMITS.delayMsMax),
  /** So many at most are sent and have no known ending (EV-9); absent: as many as the rate brings. */
  concurrency: whole(1, messagesMax).optional(),
});
export type RedrivePlan = Readonly<z.output<typeof PLAN>>;

export const REDRIVE_DEFAULTS: RedrivePlan = {
  ...{ canary: 5, ratePerSecond: 50, rampFrom: 5 },
  ...{ failureShareMax: 0.5, failureMin: 10, delayMs: 0, concurrency: undefined },
};

/** Without a receiver there is no need for a canary or a rate. */
export function defaultsOf(mode: RedriveMode): RedrivePlan {
  if (sends(mode)) return REDRIVE_DEFAULTS;
  return { ...REDRIVE_DEFAULTS, canary: 0, ratePerSecond: ratePerSecondMax, rampFrom: ratePerSecondMax, failureShareMax: 1 };
}

/** What a person may ask for; reopen undoes a resolve or discard, and needs `select.redriveId`. */
export const PERSONS_MODES = ["replay", "new_key", "resolve", "discard", "reopen"] as const satisfies RedriveMode[];

/** One of these must be there. Rows and hashes have the members of a selection in the order they have here. */
const CHOICES = {
  /** Those that are open in it (or in the one it was merged into) by their present death. */
  groupId: whole(1, Number.MAX_SAFE_INTEGER),
  groupIds: list(z.int("must be the number of a group"), REDRIVE_LIMITS.groupsMax).readonly(),
  topic: that(isTopicName, "must be namespace/name"),
  tenantId: text(LIMITS.tenantIdBytesMax),
  errorCode: text(LIMITS.errorBytesMax),
  /** They died at or after this moment, and before that one. */
  since: moment,
  until: moment,
  /** For mode reopen: what this redrive resolved or discarded, and what stands as it left it. */
  redriveId: uuid,
  /** Exactly these, of those that fit. */
  ids: list(uuid, REDRIVE_LIMITS.idsMax).readonly(),
};

const SELECT = z.object({
  ...CHOICES,
  /** Else that is listed as skipped. */
  includeHeld: flag(),
  /**
   * The mark of a preview: only what that one saw and what has not moved on since, whatever time its death bears. Once the group was
   * merged, split or held, nothing of it was seen. A mark that no preview returned throws `invalid_request`.
   */
  seen: z.custom<string>(),
  /** Oldest death first. */
  limit: whole(1, messagesMax),
});

const generationMax = whole(1, generationCapMax);
const confirm = whole(0, messagesMax);

const REQUEST = z
  .object({
    ...PLAN.partial().shape,
    select: SELECT.partial(),
    mode: oneOf(PERSONS_MODES).default("replay"),
    reason: text(LIMITS.reasonBytesMax),
    /** Pressing twice under one key is one redrive. */
    idempotencyKey: text(LIMITS.keyBytesMax).nullable().default(null),
    dryRun: flag().default(false),
    /** How many messages the person saw; refused when the list is another size (also how a large one is confirmed). */
    confirm: confirm.nullable().default(null),
    /** Replays also what was replayed more often than the cap. */
    generationMax: generationMax.default(REDRIVE_LIMITS.generationMax),
    /** The topics are delivered by functions of other processes: do not insist on a sink in this one. */
    elsewhere: flag().default(false),
    /** What was repaired before, in words. */
    afterRepair: text(LIMITS.reasonBytesMax).nullable().default(null),
  })
  .check(({ value: { select, mode }, issues }) => {
    const wrong = (path: string[], message: string) => issues.push({ code: "custom", path, message, input: select });
    const names = Object.keys(CHOICES) as (keyof typeof CHOICES)[];
    if (names.every((name) => select[name] === undefined))
      wrong(["select"], `must name a ${names.slice(0, -1).join(", ")} or ids: nothing selects everything`);
    if (select.groupIds !== undefined && select.groupId !== undefined)
      wrong(["select", "groupIds"], "goes instead of groupId, not with it");
    if ((mode === "reopen") !== (select.redriveId !== undefined)) {
      const detail = "goes with mode reopen, and that with it: the redrive that resolved or discarded what is to be open again";
      wrong(["select", "redriveId"], detail);
    }
  });
export type RedriveRequest = z.input<typeof REQUEST>;

const { limit, seen } = SELECT.shape;
/** No members but these: a misspelt selection would touch more than was asked for. */
const EXECUTION = object({ ...PLAN.shape, generationMax, limit, seen, confirm }).partial();

/** What a person may say about the redrive of an execution: whose messages it touches, and how, is its action's. */
export type ExecutionRequest = z.input<typeof EXECUTION>;

/** Throws `invalid_request` with every fault in `detail.errors`. */
function valid<S extends z.ZodType>(schema: S, asked: unknown): z.output<S> {
  const read = parse(schema, asked);
  if (read.ok) return read.value;
  const said = read.mistakes.map(({ field, detail }) => `${field} ${detail}`).join("; ");
  throw new MakegoodError("invalid_request", `the redrive was not started: ${said}`, { errors: read.mistakes });
}

export function checkRequest(request: RedriveRequest) {
  const { select: asked, ...said } = valid(REQUEST, request);
  const select: RedriveSelect = {
    ...asked,
    includeHeld: asked.includeHeld || undefined,
    ids: asked.ids && [...new Set(asked.ids)],
    limit: asked.limit ?? messagesMax,
    // The cap is for what is sent again; what was replayed too often may still be ended.
    generationMax: sends(said.mode) ? said.generationMax : REDRIVE_LIMITS.generationNone,
  };
  return { ...said, select, plan: planOver(said, defaultsOf(said.mode)) };
}

const planOver = (asked: Readonly<Record<string, unknown>>, defaults: RedrivePlan) =>
  Object.fromEntries(Object.entries(defaults).map(([name, value]) => [name, asked[name] ?? value])) as RedrivePlan;

export const checkPlan = (asked: Partial<RedrivePlan>) => planOver(valid(PLAN.partial(), asked), REDRIVE_DEFAULTS);

export const checkExecutionRequest = (asked: ExecutionRequest) => valid(EXECUTION, asked);

/**
 * The plan as a redrive keeps it, perhaps by an older process: what does not read as expected is replaced by the careful default.
 * `carrier`: which of the topic's other sinks a copy goes to.
 */
export function planOf(kept: string) {
  const found = readObject(kept) ?? {};
  const carrier = CARRIERS.find((name) => name === found.carrier);
  return { ...(PLAN.safeParse(planOver(found, REDRIVE_DEFAULTS)).data ?? REDRIVE_DEFAULTS), carrier };
}

/** What stands as the canary of a group that needs none. */
export const ALL = 2_147_483_647;

export const canaryOf = (kept: string) => planOf(kept).canary || ALL;
