/**
 * How redrives and their items become the shapes of the contract.
 */
import type { z } from "zod";
import { redrive, redriveItem } from "../../contract/recovery/redrives.ts";
import type { Redrive, RedriveItem } from "../../store/redrive.ts";
import { parsedText } from "./group-json.ts";
import { wireOf } from "./wire.ts";

export type RedriveJson = z.output<typeof redrive>;
export type RedriveItemJson = z.output<typeof redriveItem>;

export function redriveJson(found: Redrive): RedriveJson {
  const { select, counts, plan } = found;
  const known = counts.healed + counts.failed + counts.skipped;
  return wireOf(redrive, found, {
    select: {
      group_id: select.groupId ?? null,
      topic: select.topic ?? null,
      tenant_id: select.tenantId ?? null,
      error_code: select.errorCode ?? null,
      ids_given: select.idsGiven ?? null,
      limit: select.limit,
      generation_max: select.generationMax,
    },
    plan: snakeMembers(parsedText(plan)),
    progress: counts.selected === 0 ? 1 : known / counts.selected,
  });
}

export const itemJson = (item: RedriveItem): RedriveItemJson => wireOf(redriveItem, item, {});

/** The plan is kept in our own words; outside they are snake_case. */
function snakeMembers(value: unknown): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [snake(name), member]));
}
