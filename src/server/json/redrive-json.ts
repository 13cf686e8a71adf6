/**
 * How redrives and their items become the shapes of the contract.
 */
import type { z } from "zod";
import { redrive, redriveItem } from "../../contract/recovery/redrives.ts";
import { isObject } from "../../message/json.ts";
import type { Redrive, RedriveItem } from "../../store/redrive.ts";
import { parsedText } from "./group-json.ts";
import { wireName, wireOf } from "./wire.ts";

export type RedriveJson = z.output<typeof redrive>;
export type RedriveItemJson = z.output<typeof redriveItem>;

/** Shown also where they were not given. */
const SELECT = { group_id: null, topic: null, tenant_id: null, error_code: null, ids_given: null };

export function redriveJson(found: Redrive): RedriveJson {
  const { select, counts, plan } = found;
  const known = counts.healed + counts.failed + counts.skipped;
  return wireOf(redrive, found, {
    select: { ...SELECT, ...inWireNames(select) },
    plan: inWireNames(parsedText(plan)),
    progress: counts.selected === 0 ? 1 : known / counts.selected,
  });
}

export const itemJson = (item: RedriveItem): RedriveItemJson => wireOf(redriveItem, item);

/** What is kept in our own words; outside they are snake_case. */
function inWireNames<T>(value: T): T extends object ? Record<string, unknown> : T;
function inWireNames(value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [wireName(name), member ?? null]));
}
