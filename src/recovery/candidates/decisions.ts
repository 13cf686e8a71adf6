/** What people write to a candidate: approve or reject it, another action, an owner, a note, or a status that is theirs to say. */
import { MakegoodError } from "../../message/errors.ts";
import { notFound } from "../actions/catalogue.ts";
import type { Group } from "../groups/group.ts";
import { existingGroup } from "../groups/read.ts";
import type { CandidateUpdate, Versioned } from "../recovery.ts";
import { chosenBy } from "./auto-execution.ts";
import { type Candidate, lineOf } from "./candidate.ts";
import { type ExecutionStatus, handMoveRefusal } from "./candidate-state.ts";
import { reopenIfLeft, resultOf } from "./execution-record.ts";
import { actionOf, type CandidateDeps, type Change, change, type Found, wrongState } from "./found.ts";

/** An approval is for the group as it is: when that changes, what was given lapses and is said so. */
export async function approve(deps: CandidateDeps, candidateId: number, by: Versioned): Promise<Candidate> {
  if (by.actorType !== "human" || by.actor === "system") {
    const text = `Candidate ${candidateId} can be approved by people only; ${by.actor} came as ${by.actorType}.`;
    throw new MakegoodError("approval_needed", text, { candidateId, actor: by.actor });
  }
  return (await change(deps, candidateId, by.version, (found) => approval(found, by))).candidate;
}

function approval(found: Found, by: Versioned): Change | null {
  const { candidate, group, standing } = found;
  const { candidateId, decision, executionStatus } = candidate;
  if (decision === "rejected" || executionStatus !== "pending") {
    const state = decision === "rejected" ? "rejected" : executionStatus;
    throw wrongState(candidate, `Candidate ${candidateId} is ${state}: it can no longer be approved. Ask for a new suggestion.`);
  }
  actionOf(found);
  const { approvals: kept, needed, lapsedReason } = standing;
  if (kept.some(({ actor }) => actor === by.actor)) return null;
  // What does not stand any more goes, one's own that is too old too; another person's that stands is theirs.
  const gone = candidate.approvals.filter((one) => !kept.includes(one)).map(({ actor }) => actor);
  const approvals = kept.length + 1;
  const lapsed = lineOf(candidate, "approval_lapsed", by, { reason: lapsedReason });
  return {
    groupVersion: group.version,
    patch: {
      decision: approvals >= needed ? "approved" : "pending",
      approval: { actor: by.actor, note: by.reason ?? null, occurrenceCount: group.occurrenceCount },
      clearApprovals: gone,
      groupVersion: group.version,
    },
    provenance: [...(gone.length > 0 ? [lapsed] : []), lineOf(candidate, "approved", by, { details: { approvals, needed } })],
  };
}

export async function reject(deps: CandidateDeps, candidateId: number, by: Versioned): Promise<Candidate> {
  const rejected = await change(deps, candidateId, by.version, ({ candidate }) => {
    const { decision, executionStatus } = candidate;
    if (decision === "rejected") return null;
    if (executionStatus === "pending") {
      return { patch: { decision: "rejected" }, provenance: [lineOf(candidate, "rejected", by)] };
    }
    throw wrongState(candidate, `Candidate ${candidateId} is ${executionStatus}: what was begun cannot be rejected.`);
  });
  return rejected.candidate;
}

export async function update(deps: CandidateDeps, candidateId: number, by: CandidateUpdate): Promise<Candidate> {
  let patch: Change["patch"] = {};
  const { candidate, group, changed } = await change(deps, candidateId, by.version, async (found) => {
    const changes = [
      ...(by.selectedAction === undefined ? [] : [await selection(deps, found, by.selectedAction, by)]),
      ...(by.executionStatus === undefined ? [] : [move(found, by.executionStatus, by)]),
      ...(by.owner === undefined && by.note === undefined ? [] : [kept(found, by)]),
    ];
    if (changes.length === 0) return null;
    patch = Object.assign({}, ...changes.map((each) => each.patch));
    // Before the write: what is rolled back cannot be asked for again, and closing a closed breaker does nothing.
    if (patch.executionStatus === "rolled_back" && found.action?.inverse === "close_breaker") {
      for (const topic of resultOf(found.candidate).breakers ?? [found.group.topic]) await deps.topics.reset(topic);
    }
    return { patch, provenance: changes.flatMap((each) => each.provenance) };
  });
  if (!changed) return candidate;
  const { executionStatus: now } = patch;
  const released = patch.heldBy === null && group.heldBy !== null ? `${group.heldBy} does not hold it any more` : null;
  const why = now === "failed" || now === "rolled_back" ? `its execution is ${now}` : released;
  if (why !== null || now === "succeeded") await reopenIfLeft(deps, candidate, why);
  return candidate;
}

async function selection({ catalogue }: CandidateDeps, found: Found, code: string, by: CandidateUpdate): Promise<Change> {
  const { candidate, group } = found;
  const { candidateId, confidence: confidenceBefore } = candidate;
  if (candidate.decision === "rejected" || candidate.executionStatus !== "pending") {
    throw wrongState(candidate, `Candidate ${candidateId} is decided or executed: its action can no longer be changed.`);
  }
  const actions = await catalogue.all();
  const action = actions.find(({ actionCode }) => actionCode === code);
  const codes = actions.map(({ actionCode }) => actionCode);
  if (action === undefined) throw notFound(code, codes);
  if (!action.isActive || action.risk === "forbidden") {
    const text = `The action ${code} is ${action.isActive ? "forbidden" : "disabled"}.`;
    throw new MakegoodError("action_refused", text, { action: code });
  }
  const chosen = chosenBy(candidate, code, by.actor);
  const known = { action: code, confidenceBefore, confidenceAfter: chosen.confidence };
  return {
    patch: { selectedAction: code, ...chosen, decision: "pending", clearApprovals: true, groupVersion: group.version },
    provenance: [lineOf(candidate, "action_selected", by, known)],
  };
}

function move({ candidate, action }: Found, to: string, by: CandidateUpdate): Change {
  const { candidateId, selectedAction, executionStatus: from } = candidate;
  const refusal = handMoveRefusal(candidateId, from, to);
  if (refusal !== null) throw wrongState(candidate, refusal);
  if (from === "unknown" && by.actorType !== "human") {
    throw wrongState(candidate, `Candidate ${candidateId} is unknown: only a person can say what became of it.`);
  }
  if (to === "rolled_back" && !action?.inverse) {
    const text = `Nothing undoes ${selectedAction}: candidate ${candidateId} cannot be rolled back.`;
    throw new MakegoodError("action_refused", text, { candidateId, action: selectedAction });
  }
  const release = to === "rolled_back" && action?.inverse === "release";
  const event = to === "succeeded" || to === "failed" ? "executed" : to;
  return {
    patch: { executionStatus: to as ExecutionStatus, ...(release && { heldBy: null }) },
    provenance: [lineOf(candidate, event, by, { details: { from } })],
  };
}

/** Without an owner nobody holds the group any more. */
function kept({ candidate, group }: Found, by: CandidateUpdate): Change {
  const { owner, note } = by;
  const release = owner === null && group.heldBy !== null;
  return {
    patch: { owner, note, ...(release && { heldBy: null }) },
    provenance: [lineOf(candidate, release ? "released" : "updated", by, { action: null, details: { owner, note } })],
  };
}

/** A hold is taken off the way it came: as a change of the group's candidate. */
export async function release(deps: CandidateDeps, groupId: number, by: Omit<Versioned, "version">): Promise<Group> {
  const { recovery } = deps;
  const asked = await existingGroup(recovery, groupId);
  const { heldBy } = asked.mergedInto === null ? asked : await existingGroup(recovery, asked.mergedInto);
  const latest = heldBy === null ? null : await recovery.candidateOf(groupId);
  if (latest === null) {
    const text = `Group ${groupId} is held by nobody: there is nothing to release.`;
    throw new MakegoodError("wrong_state", text, { groupId });
  }
  await update(deps, latest.candidateId, { ...by, owner: null });
  return existingGroup(recovery, latest.groupId);
}
