/**
 * What a redrive is asked for: which messages, what is done to each, and how carefully. Checked in one go: every fault is reported.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Fault } from "../../message/fault.ts";
import { LIMITS } from "../../message/limits.ts";
import type { Carrier } from "../../message/topic.ts";
import { isTopicName, isWellFormed } from "../../message/validate.ts";
import { isUuid } from "../../platform/ids.ts";
import { type RedriveMode, type RedriveSelect, sends } from "./redrive.ts";

export interface RedrivePlan {
  /** So many first; the rest follows once these are known to have healed. 0: no canary. */
  readonly canary: number;
  /** Messages a second once the ramp is done. */
  readonly ratePerSecond: number;
  /** The rate doubles each second from `rampFrom` on. */
  readonly rampFrom: number;
  /** Stops by itself when more than this share of those whose ending is known failed; 1: never. */
  readonly failureShareMax: number;
  /** Not before so many are known (the canary counts as soon as it is whole). */
  readonly failureMin: number;
  /** Nothing is sent before so long after it was started. */
  readonly delayMs: number;
}

export const REDRIVE_DEFAULTS: RedrivePlan = {
  canary: 5,
  ratePerSecond: 50,
  rampFrom: 5,
  failureShareMax: 0.5,
  failureMin: 10,
  delayMs: 0,
};

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
export type PersonsMode = (typeof PERSONS_MODES)[number];

export interface RedriveRequest extends Partial<RedrivePlan> {
  readonly select: Partial<Omit<RedriveSelect, "generationMax">>;
  readonly mode?: PersonsMode | undefined;
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
export interface ExecutionRequest extends Partial<RedrivePlan>, Pick<RedriveRequest, "confirm" | "generationMax"> {
  /** The mark of the preview that was looked at: what it did not show is not touched. */
  readonly seen?: string | undefined;
  readonly limit?: number | undefined;
}

/** A request whose every member is known and in its range. */
export interface CheckedRequest {
  readonly select: RedriveSelect;
  readonly mode: PersonsMode;
  readonly plan: RedrivePlan;
  readonly reason: string;
  readonly idempotencyKey: string | null;
  readonly dryRun: boolean;
  readonly confirm: number | null;
  readonly elsewhere: boolean;
  readonly afterRepair: string | null;
}

/** The plan as a redrive keeps it; `carrier`: which of the topic's other sinks a copy goes to. */
export interface StoredPlan extends RedrivePlan {
  readonly carrier?: Carrier | undefined;
}

/** Throws `invalid_request` with every fault in `detail.errors`. */
export function checkRequest(request: RedriveRequest): CheckedRequest {
  const faults: Fault[] = [];
  const { mode = "replay" } = request;
  const plan = readPlan(request, faults, defaultsOf(mode));
  const read = readSelect(request, faults);
  // The cap is for what is sent again; what was replayed too often may still be ended.
  const select = sends(mode) ? read : { ...read, generationMax: REDRIVE_LIMITS.generationNone };
  const { reason, idempotencyKey = null, confirm, afterRepair = null } = request;
  if (!PERSONS_MODES.includes(mode)) faults.push({ field: "mode", detail: `must be one of ${PERSONS_MODES.join(", ")}` });
  if ((mode === "reopen") !== (select.redriveId !== undefined)) {
    const detail = "goes with mode reopen, and that with it: the redrive that resolved or discarded what is to be open again";
    faults.push({ field: "select.redriveId", detail });
  }
  checkText("reason", reason, LIMITS.reasonBytesMax, faults);
  if (afterRepair !== null) checkText("afterRepair", afterRepair, LIMITS.reasonBytesMax, faults);
  if (idempotencyKey !== null) checkText("idempotencyKey", idempotencyKey, LIMITS.keyBytesMax, faults);
  if (confirm !== undefined) checkNumber("confirm", confirm, 0, REDRIVE_LIMITS.messagesMax, true, faults);
  for (const field of ["dryRun", "elsewhere"] as const) {
    if (request[field] !== undefined && typeof request[field] !== "boolean")
      faults.push({ field, detail: "must be true or false" });
  }
  refuse(faults);
  const { dryRun = false, elsewhere = false } = request;
  return { select, mode, plan, reason, idempotencyKey, dryRun, confirm: confirm ?? null, elsewhere, afterRepair };
}

/** The plan of a request over its defaults; throws like `checkRequest`. */
export function checkPlan(asked: Partial<RedrivePlan>, defaults: RedrivePlan = REDRIVE_DEFAULTS): RedrivePlan {
  const faults: Fault[] = [];
  const plan = readPlan(asked, faults, defaults);
  refuse(faults);
  return plan;
}

const EXECUTION_MEMBERS = [...Object.keys(REDRIVE_DEFAULTS), "confirm", "generationMax", "seen", "limit"];

/** Throws like `checkRequest`, also for an unknown member: a misspelt selection would touch more than was asked for. */
export function checkExecutionRequest(asked: ExecutionRequest): void {
  const faults: Fault[] = [];
  readPlan(asked, faults);
  const { confirm = 0, generationMax = 1, limit = 1, seen = "" } = asked;
  checkNumber("confirm", confirm, 0, REDRIVE_LIMITS.messagesMax, true, faults);
  checkNumber("generationMax", generationMax, 1, REDRIVE_LIMITS.generationCapMax, true, faults);
  checkNumber("limit", limit, 1, REDRIVE_LIMITS.messagesMax, true, faults);
  checkSeen(seen, faults);
  for (const field of Object.keys(asked)) {
    if (!EXECUTION_MEMBERS.includes(field)) faults.push({ field, detail: "is not heard by an execution" });
  }
  refuse(faults);
}

function refuse(faults: readonly Fault[]): void {
  if (faults.length === 0) return;
  const text = faults.map(({ field, detail }) => `${field} ${detail}`).join("; ");
  throw new MakegoodError("invalid_request", `the redrive was not started: ${text}`, { errors: faults });
}

function readPlan(asked: Partial<RedrivePlan>, faults: Fault[], defaults: RedrivePlan = REDRIVE_DEFAULTS): RedrivePlan {
  const { ratePerSecondMin, ratePerSecondMax, canaryMax, messagesMax, delayMsMax } = REDRIVE_LIMITS;
  const number = (field: keyof RedrivePlan, min: number, max: number, whole: boolean): number => {
    const value = asked[field] ?? defaults[field];
    checkNumber(field, value, min, max, whole, faults);
    return value;
  };
  return {
    canary: number("canary", 0, canaryMax, true),
    ratePerSecond: number("ratePerSecond", ratePerSecondMin, ratePerSecondMax, false),
    rampFrom: number("rampFrom", ratePerSecondMin, ratePerSecondMax, false),
    failureShareMax: number("failureShareMax", 0, 1, false),
    failureMin: number("failureMin", 1, messagesMax, true),
    delayMs: number("delayMs", 0, delayMsMax, true),
  };
}

function readSelect({ select = {}, generationMax }: Partial<RedriveRequest>, faults: Fault[]): RedriveSelect {
  const { groupId, groupIds, topic, tenantId, errorCode, ids, since, until, redriveId, includeHeld, seen } = select;
  const { limit = REDRIVE_LIMITS.messagesMax } = select;
  const named = { groupId, groupIds, topic, tenantId, errorCode, since, until, redriveId, ids };
  if (Object.values(named).every((member) => member === undefined)) {
    const names = Object.keys(named).slice(0, -1).join(", ");
    faults.push({ field: "select", detail: `must name a ${names} or ids: nothing selects everything` });
  }
  if (groupIds !== undefined) checkGroups(groupIds, groupId, faults);
  for (const [field, moment] of Object.entries({ since, until })) {
    if (moment !== undefined && !(moment instanceof Date && Number.isFinite(moment.getTime())))
      faults.push({ field: `select.${field}`, detail: "must be a moment: a Date" });
  }
  if (redriveId !== undefined && !(typeof redriveId === "string" && isUuid(redriveId)))
    faults.push({ field: "select.redriveId", detail: "must be the id of a redrive: a UUID in lower case" });
  if (includeHeld !== undefined && typeof includeHeld !== "boolean")
    faults.push({ field: "select.includeHeld", detail: "must be true or false" });
  if (groupId !== undefined) checkNumber("select.groupId", groupId, 1, Number.MAX_SAFE_INTEGER, true, faults);
  if (topic !== undefined && !(typeof topic === "string" && isTopicName(topic))) {
    faults.push({ field: "select.topic", detail: "must be namespace/name" });
  }
  if (tenantId !== undefined) checkText("select.tenantId", tenantId, LIMITS.tenantIdBytesMax, faults);
  if (errorCode !== undefined) checkText("select.errorCode", errorCode, LIMITS.errorBytesMax, faults);
  if (ids !== undefined) checkIds(ids, faults);
  if (seen !== undefined) checkSeen(seen, faults);
  checkNumber("select.limit", limit, 1, REDRIVE_LIMITS.messagesMax, true, faults);
  const cap = generationMax ?? REDRIVE_LIMITS.generationMax;
  checkNumber("generationMax", cap, 1, REDRIVE_LIMITS.generationCapMax, true, faults);
  const unique = Array.isArray(ids) ? [...new Set(ids)] : undefined;
  return { ...named, includeHeld: includeHeld || undefined, ids: unique, seen, limit, generationMax: cap };
}

function checkGroups(groupIds: readonly number[], groupId: number | undefined, faults: Fault[]): void {
  const { groupsMax } = REDRIVE_LIMITS;
  const fits =
    Array.isArray(groupIds) && groupIds.length >= 1 && groupIds.length <= groupsMax && groupIds.every(Number.isSafeInteger);
  if (!fits) faults.push({ field: "select.groupIds", detail: `must be a list of 1 to ${groupsMax} numbers of groups` });
  if (groupId !== undefined) faults.push({ field: "select.groupIds", detail: "goes instead of groupId, not with it" });
}

/** The store made the mark: it alone knows what it means and whether it is one of its own. */
function checkSeen(seen: unknown, faults: Fault[]): void {
  if (typeof seen !== "string") faults.push({ field: "seen", detail: "must be the mark of a preview" });
}

function checkIds(ids: readonly string[], faults: Fault[]): void {
  const fits = Array.isArray(ids) && ids.length >= 1 && ids.length <= REDRIVE_LIMITS.idsMax;
  if (!fits) faults.push({ field: "select.ids", detail: `must be a list of 1 to ${REDRIVE_LIMITS.idsMax} message ids` });
  else if (!ids.every((id) => typeof id === "string" && isUuid(id))) {
    faults.push({ field: "select.ids", detail: "must hold message ids only: UUIDs in lower case" });
  }
}

function checkNumber(field: string, value: unknown, min: number, max: number, whole: boolean, faults: Fault[]): void {
  if (typeof value === "number" && value >= min && value <= max && (!whole || Number.isInteger(value))) return;
  faults.push({ field, detail: `must be ${whole ? "a whole number" : "a number"} from ${min} to ${max}` });
}

function checkText(field: string, value: unknown, bytesMax: number, faults: Fault[]): void {
  if (typeof value !== "string" || value.trim() === "") faults.push({ field, detail: "must be a text that is not empty" });
  else if (Buffer.byteLength(value) > bytesMax) faults.push({ field, detail: `must have at most ${bytesMax} bytes` });
  else if (value.includes("\0") || !isWellFormed(value))
    faults.push({ field, detail: "must not contain NUL or half a surrogate pair" });
}
