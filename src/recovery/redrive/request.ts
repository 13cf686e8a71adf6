/** What a redrive is asked for: which messages, what is done to each, and how carefully. */
import { MakegoodError } from "../../message/errors.ts";
import type { Fault } from "../../message/fault.ts";
import { readObject } from "../../message/json.ts";
import { LIMITS } from "../../message/limits.ts";
import { CARRIERS, type Carrier } from "../../message/topic.ts";
import { isTopicName, isWellFormed } from "../../message/validate.ts";
import { isUuid } from "../../platform/ids.ts";
import { type RedriveMode, type RedriveSelect, sends } from "./redrive.ts";

export const REDRIVE_DEFAULTS = {
  /** So many first; the rest follows once these are known to have healed. 0: no canary. */
  canary: 5,
  /** Messages a second once the ramp is done. */
  ratePerSecond: 50,
  /** The rate doubles each second from here on. */
  rampFrom: 5,
  /** Stops by itself when more than this share of those whose ending is known failed; 1: never. */
  failureShareMax: 0.5,
  /** Not before so many are known (the canary counts as soon as it is whole). */
  failureMin: 10,
  /** Nothing is sent before so long after it was started. */
  delayMs: 0,
};
export type RedrivePlan = { readonly [K in keyof typeof REDRIVE_DEFAULTS]: number };

/** Without a receiver there is no need for a canary or a rate. */
export function defaultsOf(mode: RedriveMode): RedrivePlan {
  if (sends(mode)) return REDRIVE_DEFAULTS;
  const ratePerSecond = REDRIVE_LIMITS.ratePerSecondMax;
  return { ...REDRIVE_DEFAULTS, canary: 0, ratePerSecond, rampFrom: ratePerSecond, failureShareMax: 1 };
}

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

/** What a person may ask for; reopen undoes a resolve or discard, and needs `select.redriveId`. */
export const PERSONS_MODES = ["replay", "new_key", "resolve", "discard", "reopen"] as const satisfies RedriveMode[];

export interface RedriveRequest extends Partial<RedrivePlan> {
  readonly select: Partial<Omit<RedriveSelect, "generationMax">>;
  readonly mode?: (typeof PERSONS_MODES)[number] | undefined;
  readonly reason: string;
  /** Pressing twice under one key is one redrive. */
  readonly idempotencyKey?: string | null | undefined;
  readonly dryRun?: boolean | undefined;
  /** How many messages the person saw; refused when the list is another size (also how a large one is confirmed). */
  readonly confirm?: number | undefined;
  /** Replays also what was replayed more often than the cap. */
  readonly generationMax?: number | undefined;
  /** The topics are delivered by functions of other processes: do not insist on a sink in this one. */
  readonly elsewhere?: boolean | undefined;
  /** What was repaired before, in words. */
  readonly afterRepair?: string | null | undefined;
}

/** What a person may say about the redrive of an execution: whose messages it touches, and how, is its action's. */
export type ExecutionRequest = Partial<RedrivePlan & Pick<RedriveSelect, "generationMax" | "limit" | "seen">> &
  Pick<RedriveRequest, "confirm">;

type Check = readonly [fits: (value: unknown) => boolean, detail: string];

const isText = (value: unknown): value is string => typeof value === "string";
const isId = (value: unknown): boolean => isText(value) && isUuid(value);
const isFrom = (min: number, max: number, value: unknown): boolean => typeof value === "number" && value >= min && value <= max;

const within = (min: number, max: number): Check => [(n) => isFrom(min, max, n), `must be a number from ${min} to ${max}`];
const whole = (min: number, max: number): Check => [
  (n) => Number.isInteger(n) && isFrom(min, max, n),
  `must be a whole number from ${min} to ${max}`,
];
const listOf = (max: number, is: (value: unknown) => boolean, what: string): Check => [
  (list) => Array.isArray(list) && isFrom(1, max, list.length) && list.every(is),
  `must be a list of 1 to ${max} ${what}`,
];
const text = (bytesMax: number): Check => [
  (value) =>
    isText(value) && value.trim() !== "" && Buffer.byteLength(value) <= bytesMax && !value.includes("\0") && isWellFormed(value),
  `must be a text that is not empty, of at most ${bytesMax} bytes, without NUL or half a surrogate pair`,
];
const orNull = ([fits, detail]: Check): Check => [(value) => value === null || fits(value), detail];
const flag: Check = [(value) => typeof value === "boolean", "must be true or false"];
const moment: Check = [(at) => at instanceof Date && Number.isFinite(at.getTime()), "must be a moment: a Date"];

const { messagesMax, ratePerSecondMin, ratePerSecondMax, generationCapMax } = REDRIVE_LIMITS;

const PLAN: Readonly<Record<keyof RedrivePlan, Check>> = {
  canary: whole(0, REDRIVE_LIMITS.canaryMax),
  ratePerSecond: within(ratePerSecondMin, ratePerSecondMax),
  rampFrom: within(ratePerSecondMin, ratePerSecondMax),
  failureShareMax: within(0, 1),
  failureMin: whole(1, messagesMax),
  delayMs: whole(0, REDRIVE_LIMITS.delayMsMax),
};

/** One of these must be there. */
const CHOICES = {
  groupId: whole(1, Number.MAX_SAFE_INTEGER),
  groupIds: listOf(REDRIVE_LIMITS.groupsMax, Number.isSafeInteger, "numbers of groups"),
  topic: [(name) => isText(name) && isTopicName(name), "must be namespace/name"] as Check,
  tenantId: text(LIMITS.tenantIdBytesMax),
  errorCode: text(LIMITS.errorBytesMax),
  since: moment,
  until: moment,
  redriveId: [isId, "must be the id of a redrive: a UUID in lower case"] as Check,
  ids: listOf(REDRIVE_LIMITS.idsMax, isId, "message ids: UUIDs in lower case"),
};
const SELECT = { ...CHOICES, includeHeld: flag, limit: whole(1, messagesMax) };
const ASKED = { confirm: whole(0, messagesMax), generationMax: whole(1, generationCapMax) };
const EXECUTION = { ...PLAN, ...ASKED, limit: SELECT.limit };

const REQUEST = {
  generationMax: ASKED.generationMax,
  mode: [(mode) => PERSONS_MODES.some((known) => known === mode), `must be one of ${PERSONS_MODES.join(", ")}`] as Check,
  reason: text(LIMITS.reasonBytesMax),
  idempotencyKey: orNull(text(LIMITS.keyBytesMax)),
  confirm: ASKED.confirm,
  dryRun: flag,
  elsewhere: flag,
  afterRepair: orNull(text(LIMITS.reasonBytesMax)),
};

function faultsOf(checks: Readonly<Record<string, Check>>, given: object, prefix = ""): Fault[] {
  return Object.entries(checks).flatMap(([name, [fits, detail]]) => {
    const value = (given as Record<string, unknown>)[name];
    return value === undefined || fits(value) ? [] : [{ field: `${prefix}${name}`, detail }];
  });
}

function selectFaults(select: RedriveRequest["select"], mode: string): Fault[] {
  const faults = faultsOf(SELECT, select, "select.");
  const names = Object.keys(CHOICES);
  if (names.every((name) => select[name as keyof typeof select] === undefined)) {
    const detail = `must name a ${names.slice(0, -1).join(", ")} or ids: nothing selects everything`;
    faults.push({ field: "select", detail });
  }
  if (select.groupIds !== undefined && select.groupId !== undefined)
    faults.push({ field: "select.groupIds", detail: "goes instead of groupId, not with it" });
  if ((mode === "reopen") !== (select.redriveId !== undefined)) {
    const detail = "goes with mode reopen, and that with it: the redrive that resolved or discarded what is to be open again";
    faults.push({ field: "select.redriveId", detail });
  }
  return faults;
}

/** Throws `invalid_request` with every fault in `detail.errors`. */
export function checkRequest(request: RedriveRequest) {
  const { mode = "replay", reason = "", idempotencyKey = null, dryRun = false, confirm = null, elsewhere = false } = request;
  const { afterRepair = null, generationMax = REDRIVE_LIMITS.generationMax, select: asked = {} } = request;
  const plan = planOver(request, defaultsOf(mode));
  refuse([...faultsOf(PLAN, plan), ...selectFaults(asked, mode), ...faultsOf(REQUEST, { ...request, reason })]);
  const select: RedriveSelect = {
    ...Object.fromEntries(Object.keys(CHOICES).map((name) => [name, asked[name as keyof typeof CHOICES]])),
    includeHeld: asked.includeHeld || undefined,
    ids: asked.ids && [...new Set(asked.ids)],
    seen: asked.seen,
    limit: asked.limit ?? messagesMax,
    // The cap is for what is sent again; what was replayed too often may still be ended.
    generationMax: sends(mode) ? generationMax : REDRIVE_LIMITS.generationNone,
  };
  return { select, mode, plan, reason, idempotencyKey, dryRun, confirm, elsewhere, afterRepair };
}

const planOver = (asked: Partial<RedrivePlan>, defaults: RedrivePlan) =>
  Object.fromEntries(
    Object.entries(defaults).map(([name, value]) => [name, asked[name as keyof RedrivePlan] ?? value]),
  ) as unknown as RedrivePlan;

/** The plan of a request over the defaults; throws like `checkRequest`. */
export function checkPlan(asked: Partial<RedrivePlan>): RedrivePlan {
  const plan = planOver(asked, REDRIVE_DEFAULTS);
  refuse(faultsOf(PLAN, plan));
  return plan;
}

/** Throws like `checkRequest`, also for an unknown member: a misspelt selection would touch more than was asked for. */
export function checkExecutionRequest(asked: ExecutionRequest): void {
  const unknown = Object.keys(asked).filter((field) => field !== "seen" && !Object.hasOwn(EXECUTION, field));
  const unheard = unknown.map((field) => ({ field, detail: "is not heard by an execution" }));
  refuse([...faultsOf(EXECUTION, { ...asked, ...planOver(asked, REDRIVE_DEFAULTS) }), ...unheard]);
}

function refuse(faults: readonly Fault[]): void {
  if (faults.length === 0) return;
  const said = faults.map(({ field, detail }) => `${field} ${detail}`).join("; ");
  throw new MakegoodError("invalid_request", `the redrive was not started: ${said}`, { errors: faults });
}

/**
 * The plan as a redrive keeps it, perhaps by an older process: what does not read as expected is replaced by the careful default.
 * `carrier`: which of the topic's other sinks a copy goes to.
 */
export function planOf(kept: string): RedrivePlan & { readonly carrier?: Carrier | undefined } {
  const found = readObject(kept) ?? {};
  const carrier = CARRIERS.find((name) => name === found.carrier);
  const plan = planOver(found, REDRIVE_DEFAULTS);
  return { ...(faultsOf(PLAN, plan).length === 0 ? plan : REDRIVE_DEFAULTS), carrier };
}
