/**
 * Which approvals stand: those of different people, for the group as it is now, not older than their time (EV-50). `system` is nobody,
 * and the same name twice is one person. Pure.
 */
import type { Approval, Candidate, Group } from "../../store/recovery.ts";
import { approvalsNeeded } from "../actions/applies.ts";
import type { CatalogueAction } from "../actions/catalogue.ts";

export interface Standing {
  readonly approvals: readonly Approval[];
  /** Some were given and do not stand any more. */
  readonly lapsed: boolean;
  readonly needed: number;
  readonly missing: number;
}

export function standingOf(
  candidate: Pick<Candidate, "approvals" | "groupVersion">,
  group: Pick<Group, "version">,
  action: Pick<CatalogueAction, "approval" | "risk"> | null,
  { nowMs, approvalMs }: { readonly nowMs: number; readonly approvalMs: number },
): Standing {
  const people = candidate.approvals.filter(({ actor }) => actor !== "system");
  const same = candidate.groupVersion === group.version;
  const approvals = same ? people.filter(({ at }) => nowMs - at.getTime() < approvalMs) : [];
  const needed = action === null ? 1 : approvalsNeeded(action);
  return { approvals, lapsed: approvals.length < people.length, needed, missing: Math.max(0, needed - approvals.length) };
}

/** Why it may not run yet; null: enough people have approved. */
export function approvalRefusal(candidateId: number, { missing, needed, lapsed }: Standing): string | null {
  if (missing === 0) return null;
  if (lapsed)
    return `The approval of candidate ${candidateId} has lapsed (its group changed, or it was too long ago): approve it again.`;
  const people = needed === 1 ? "one person" : "two different people";
  return `Candidate ${candidateId} needs the approval of ${people}; ${missing} more must approve.`;
}
