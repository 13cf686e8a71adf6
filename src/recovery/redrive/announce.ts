/** Tells of a redrive: the line of the append-only record, and the event of its progress. */
import type { Events } from "../../observe/events.ts";
import { line, type NewProvenance } from "../provenance.ts";
import type { Actor } from "../recovery.ts";
import type { NewRedrive, Redrive, RedriveCounts } from "./redrive.ts";

/** Stands in the same write as the change it tells of. */
export function redriveLine(
  event: string,
  { redriveId, select, candidateId, action }: Pick<NewRedrive | Redrive, "redriveId" | "select" | "candidateId" | "action">,
  by: Actor,
  reason: string | null,
  details?: object,
): NewProvenance {
  const about = { groupId: select.groupId ?? null, candidateId, redriveId, action };
  return line(`redrive_${event}`, by, { ...about, reason, details: details && { ...details } });
}

/** `since`: the counts of the last event of this process, so that counters of what changed add up over all processes. */
export function announce(events: Events, redrive: Redrive, since: RedriveCounts = redrive.counts): void {
  const { redriveId: id, candidateId, status, statusReason: reason, counts } = redrive;
  const ever = ({ sent, healed, failed }: RedriveCounts): number => sent + healed + failed;
  const grown = (name: "healed" | "failed" | "skipped") => Math.max(0, counts[name] - since[name]);
  const changed = {
    selected: 0,
    waiting: counts.waiting - since.waiting,
    // Each message once, also one whose ending is known by now.
    sent: Math.max(0, ever(counts) - ever(since)),
    healed: grown("healed"),
    failed: grown("failed"),
    skipped: grown("skipped"),
  };
  events.emit({ type: "redrive", id, candidateId, status, reason, counts, changed });
}
