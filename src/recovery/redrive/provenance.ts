/**
 * The line of the append-only record that stands in the same write as a change of a redrive.
 */
import type { NewProvenance } from "../provenance.ts";
import { line } from "../provenance.ts";
import type { Actor } from "../recovery.ts";
import type { NewRedrive } from "./redrive.ts";

type About = Pick<NewRedrive, "redriveId" | "select" | "candidateId" | "action">;

export function redriveLine(
  event: string,
  { redriveId, select, candidateId, action }: About,
  by: Actor,
  reason: string | null,
  details: object | null = null,
): NewProvenance {
  const about = { groupId: select.groupId ?? null, candidateId, redriveId, action };
  return line(`redrive_${event}`, by, { ...about, reason, details: details === null ? undefined : { ...details } });
}
