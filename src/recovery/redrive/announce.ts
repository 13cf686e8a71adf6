/**
 * Tells of a redrive's progress: one event when its status changes, at most one a second while it runs. `changed` is what
 * happened since the last event of this process, so that counters add up over all processes.
 */
import type { Events } from "../../observe/events.ts";
import type { Redrive, RedriveCounts } from "./redrive.ts";

const NONE: RedriveCounts = { selected: 0, waiting: 0, sent: 0, healed: 0, failed: 0, skipped: 0 };

export function announce(events: Events, redrive: Redrive, since: RedriveCounts | null): void {
  const { redriveId: id, candidateId, status, statusReason, counts } = redrive;
  events.emit({
    type: "redrive",
    id,
    candidateId,
    status,
    reason: statusReason,
    counts,
    changed: since ? changedSince(counts, since) : NONE,
  });
}

/** Sent counts each message once, also one whose ending is known by now. */
function changedSince(now: RedriveCounts, before: RedriveCounts): RedriveCounts {
  const ever = ({ sent, healed, failed }: RedriveCounts): number => sent + healed + failed;
  return {
    selected: 0,
    waiting: now.waiting - before.waiting,
    sent: Math.max(0, ever(now) - ever(before)),
    healed: Math.max(0, now.healed - before.healed),
    failed: Math.max(0, now.failed - before.failed),
    skipped: Math.max(0, now.skipped - before.skipped),
  };
}
