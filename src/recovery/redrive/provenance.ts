/**
 * The line of the append-only record that stands in the same write as a change of a redrive.
 */
import type { NewProvenance } from "../../store/recovery.ts";
import type { NewRedrive } from "../../store/redrive.ts";
import type { Actor } from "../recovery.ts";

type About = Pick<NewRedrive, "id" | "select" | "candidateId" | "action">;

export function redriveLine(
  event: string,
  { id, select, candidateId, action }: About,
  { actor, actorType }: Actor,
  reason: string | null,
  details: unknown = null,
): NewProvenance {
  return {
    groupId: select.groupId ?? null,
    candidateId,
    redriveId: id,
    event: `redrive_${event}`,
    actor,
    actorType,
    reason,
    rule: null,
    action,
    confidenceBefore: null,
    confidenceAfter: null,
    durationMs: null,
    details: details === null ? null : JSON.stringify(details),
  };
}
