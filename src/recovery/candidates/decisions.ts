/**
 * Approve and reject. Two people who approve at the same moment both count; one who looked at an older version is refused, if a
 * version was named. An approval is for the group as it is: when that changes, what was given lapses and is said so.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { NewProvenance } from "../provenance.ts";
import { line } from "../provenance.ts";
import type { Versioned } from "../recovery.ts";
import type { Candidate } from "./candidate.ts";
import { actionOf, type CandidateDeps, type Found, untilWritten, writtenOf, wrongState } from "./found.ts";

export function createDecisions(deps: CandidateDeps) {
  const { recovery } = deps;

  async function approveOnce(found: Found, by: Versioned): Promise<Candidate | "again"> {
    const { candidate, group, standing } = found;
    const { candidateId, groupId, version } = candidate;
    if (candidate.decision === "rejected" || candidate.executionStatus !== "pending") {
      const state = candidate.decision === "rejected" ? "rejected" : candidate.executionStatus;
      throw wrongState(
        candidate,
        `Candidate ${candidateId} is ${state}: it can no longer be approved. Ask for a new suggestion.`,
      );
    }
    const action = actionOf(found);
    if (standing.approvals.some(({ actor }) => actor === by.actor)) return candidate;
    // What does not stand any more goes, one's own that is too old too; another person's that stands is theirs.
    const gone = candidate.approvals.filter((one) => !standing.approvals.includes(one)).map(({ actor }) => actor);
    const kept = standing.approvals.length;
    const enough = kept + 1 >= Math.max(1, standing.needed);
    const said = { candidateId, groupId, action: action.actionCode };
    const provenance: NewProvenance[] = [
      ...(gone.length > 0 ? [line("approval_lapsed", by, { ...said, reason: standing.lapsedReason })] : []),
      line("approved", by, { ...said, reason: by.reason ?? null, details: { approvals: kept + 1, needed: standing.needed } }),
    ];
    const approval = { actor: by.actor, note: by.reason ?? null, occurrenceCount: group.occurrenceCount };
    const patch = { decision: decisionFor(candidate, enough), approval, clearApprovals: gone, groupVersion: group.version };
    const written = await recovery.write({ candidateId, version, groupVersion: group.version, patch, provenance });
    return written.kind === "version_conflict" || written.kind === "group_changed" ? "again" : writtenOf(candidateId, written);
  }

  async function rejectOnce({ candidate }: Found, by: Versioned): Promise<Candidate | "again"> {
    const { candidateId, groupId, version, decision, executionStatus } = candidate;
    if (decision === "rejected") return candidate;
    if (executionStatus !== "pending") {
      throw wrongState(candidate, `Candidate ${candidateId} is ${executionStatus}: what was begun cannot be rejected.`);
    }
    const said = { candidateId, groupId, action: candidate.selectedAction, reason: by.reason ?? null };
    const provenance = [line("rejected", by, said)];
    const written = await recovery.write({ candidateId, version, patch: { decision: "rejected" }, provenance });
    return written.kind === "version_conflict" ? "again" : writtenOf(candidateId, written);
  }

  return {
    async approve(candidateId: number, by: Versioned): Promise<Candidate> {
      if (by.actorType !== "human" || by.actor === "system") {
        const text = `Candidate ${candidateId} can be approved by people only; ${by.actor} came as ${by.actorType}.`;
        throw new MakegoodError("approval_needed", text, { candidateId, actor: by.actor });
      }
      return untilWritten(deps, candidateId, by.version, (found) => approveOnce(found, by));
    },
    reject: (candidateId: number, by: Versioned) => untilWritten(deps, candidateId, by.version, (found) => rejectOnce(found, by)),
  };
}

function decisionFor({ decision }: Candidate, enough: boolean): "approved" | "pending" | undefined {
  const next = enough ? "approved" : "pending";
  return next === decision ? undefined : next;
}
