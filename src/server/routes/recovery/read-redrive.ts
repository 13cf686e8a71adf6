/**
 * A redrive as it is asked for over HTTP. Shape and types are judged here, all faults at once; what a plan may be is the engine's
 * business, which says all of that at once as well.
 */

import { isUuid } from "../../../platform/ids.ts";
import type { RedrivePlan, RedriveRequest } from "../../../recovery/redrive/request.ts";
import type { Fields } from "../../contract/fields.ts";
import { nameOf, reasonOf } from "./body.ts";

const COUNT_MAX = Number.MAX_SAFE_INTEGER;
const IDS_MAX = 10_000;

/** `headerKey`: pressing twice under one key is one redrive. */
export function readRedrive(fields: Fields, headerKey: string | null): RedriveRequest {
  const select = fields.object("select");
  if (!fields.has("select")) fields.fault("select", "is missing: say which dead letters, such as {group_id: 7}");
  const chosen = select === undefined ? {} : readSelect(select);
  select?.refuseUnknown();
  return {
    select: chosen,
    mode: fields.oneOf("mode", ["replay", "new_key"]),
    reason: reasonOf(fields),
    requestKey: nameOf(fields, "idempotency_key") ?? headerKey,
    dryRun: fields.boolean("dry_run"),
    confirm: fields.integer("confirm", 0, COUNT_MAX),
    generationMax: fields.integer("generation_max", 1, COUNT_MAX),
    elsewhere: fields.boolean("elsewhere"),
    ...readPlan(fields),
  };
}

function readSelect(select: Fields): RedriveRequest["select"] {
  const isId = (value: unknown): value is string => typeof value === "string" && isUuid(value);
  return {
    groupId: select.integer("group_id", 1, COUNT_MAX),
    topic: nameOf(select, "topic"),
    tenantId: nameOf(select, "tenant_id"),
    code: nameOf(select, "error_code"),
    ids: select.list("ids", IDS_MAX, isId, "message ids"),
    seen: select.text("seen"),
    limit: select.integer("limit", 1, COUNT_MAX),
  };
}

/** Absent members are left to the defaults. */
export function readPlan(fields: Fields): Partial<RedrivePlan> {
  const plan = {
    canary: fields.integer("canary", 0, COUNT_MAX),
    ratePerSecond: number(fields, "rate_per_second"),
    rampFrom: number(fields, "ramp_from"),
    failureShareMax: number(fields, "failure_share_max"),
    failureMin: fields.integer("failure_min", 0, COUNT_MAX),
    delayMs: fields.integer("delay_ms", 0, COUNT_MAX),
  };
  return Object.fromEntries(Object.entries(plan).filter(([, value]) => value !== undefined));
}

function number(fields: Fields, name: string): number | undefined {
  const value = fields.raw(name);
  if (value === undefined) return undefined;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  fields.fault(name, "must be a number");
  return undefined;
}
