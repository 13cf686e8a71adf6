/**
 * How redrives and their items become the shapes of the contract.
 */
import type { z } from "zod";
import { redrive, redriveItem } from "../../contract/recovery/redrives.ts";
import type { Redrive, RedriveItem } from "../../store/redrive.ts";
import { parsedText } from "./group-json.ts";
import { inWireNames, wireOf } from "./wire.ts";

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
