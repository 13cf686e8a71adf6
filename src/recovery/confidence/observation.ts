/**
 * What one execution showed about one group: how many of its messages healed, under which circumstances. It counts as one observation
 * whatever its size, because messages that fail together heal together. What healed after a repair says nothing about the action
 * alone, and a failure at a receiver that was down says nothing about other groups.
 */
import type { Cause } from "../causes/cause.ts";
import { type OutcomeCounts, outcomeCounts } from "./outcome-counts.ts";
import type { Observation } from "./outcomes-sql.ts";

export type { Observation };

/** These do not go away by waiting: where a person's execution heals, the person had repaired something first. */
const NEEDS_REPAIR: ReadonlySet<string> = new Set<Cause>([
  "auth_or_permission",
  "bad_payload",
  "missing_target",
  "bug_in_receiver",
  "bug_in_sender",
  "config_or_tls",
  "business_refusal",
]);

/** What was repaired before it; null: the action worked, or failed, alone. */
export function repairBefore({ repair, byPerson, cause, healed }: Observation): string | null {
  if (repair !== null) return repair;
  if (!byPerson || healed === 0 || cause === null || !NEEDS_REPAIR.has(cause)) return null;
  return `a person ran it, and ${cause} does not heal by itself`;
}

/** R2: an execution weighs 1, shared between what healed and what did not. */
export function countsOf({ healed, failed, at }: Observation): OutcomeCounts {
  const share = healed / (healed + failed);
  return outcomeCounts(share, 1 - share, at);
}

/** Whether it says something about other groups: a receiver that was down fails everything. */
export function teachesOthers({ healed, failed, deliveredSince, breakerOpen }: Observation): boolean {
  return healed > failed || (deliveredSince && !breakerOpen);
}
