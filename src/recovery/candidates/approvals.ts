/**
 * Which approvals stand: those of different people, for the group as it is now, not older than their time, and while the group is
 * about as large as it was when it was looked at. `system` does not count, and the same name twice is one person.
 */
import { MakegoodError } from "../../message/errors.ts";
import { approvalsNeeded } from "../actions/applies.ts";
import type { CatalogueAction } from "../actions/catalogue.ts";
import type { Group } from "../groups/group.ts";
import type { Records } from "../records.ts";
import type { Actor } from "../recovery.ts";
import { type Candidate, lineOf } from "./candidate.ts";

export type Standing = ReturnType<typeof standingOf>;

/** An approval is about what was seen: it stands while no more than this share came to it. */
const GROWTH_SHARE_MAX = 0.1;

export function standingOf(
  candidate: Pick<Candidate, "approvals" | "groupVersion">,
  group: Pick<Group, "version" | "occurrenceCount">,
  action: Pick<CatalogueAction, "approval" | "risk"> | null,
  { nowMs, approvalMs }: { readonly nowMs: number; readonly approvalMs: number },
) {
  const people = candidate.approvals.filter(({ actor }) => actor !== "system");
  const same = candidate.groupVersion === group.version;
  const young = people.filter(({ at }) => nowMs - at.getTime() < approvalMs);
  const seen = same ? (young[0]?.occurrenceCount ?? null) : null;
  const grown = seen !== null && group.occurrenceCount - seen > seen * GROWTH_SHARE_MAX;
  const approvals = same && !grown ? young : [];
  const lapsed = approvals.length < people.length;
  const needed = action === null ? 1 : approvalsNeeded(action);
  const missing = Math.max(0, needed - approvals.length);
  return { approvals, lapsed, lapsedReason: lapsed ? whyLapsed(same, grown ? seen : null, group) : null, needed, missing };
}

function whyLapsed(same: boolean, seen: number | null, { occurrenceCount }: Pick<Group, "occurrenceCount">): string {
  if (!same) return "its group changed";
  return seen === null ? "it was too long ago" : `its group had ${seen} failures then and has ${occurrenceCount} now`;
}

/** Why it may not run yet; null: enough people have approved. */
export function approvalRefusal(candidateId: number, { missing, needed, lapsedReason }: Standing): string | null {
  if (missing === 0) return null;
  if (lapsedReason !== null) return `The approval of candidate ${candidateId} has lapsed (${lapsedReason}): approve it again.`;
  const people = needed === 1 ? "one person" : "two different people";
  return `Candidate ${candidateId} needs the approval of ${people}; ${missing} more must approve.`;
}

/** What was approved for something else is taken back, on record, before it is refused. */
export async function refuseUnapproved(
  { write }: Pick<Records, "write">,
  { candidate, standing }: { readonly candidate: Candidate; readonly standing: Standing },
  { actor, actorType }: Actor,
): Promise<void> {
  const { candidateId, version, decision } = candidate;
  const reason = approvalRefusal(candidateId, standing);
  if (reason === null) return;
  const { missing, needed, lapsed } = standing;
  if (lapsed && decision === "approved") {
    const provenance = [lineOf(candidate, "approval_lapsed", { actor, actorType, reason })];
    await write({ candidateId, version, patch: { decision: "pending", clearApprovals: true }, provenance });
  }
  throw new MakegoodError("approval_needed", reason, { candidateId, missing, needed, lapsed });
}
