/**
 * What a person writes to a candidate: another action, an owner, a note, or a status that is theirs to say. Everything else
 * is refused with what would be allowed. Rolling back does what undoes the action, where something does.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { TopicStore } from "../../store/topics.ts";
import type { Catalogue } from "../actions/catalogue.ts";
import { notFound } from "../actions/catalogue.ts";
import type { Group } from "../groups/group.ts";
import { existingGroup } from "../groups/read.ts";
import type { NewProvenance } from "../provenance.ts";
import { line } from "../provenance.ts";
import type { Records } from "../records.ts";
import type { CandidateUpdate, Versioned } from "../recovery.ts";
import type { Candidate, CandidatePatch, ExecutionStatus } from "./candidate.ts";
import { EXECUTION_STATUSES } from "./candidate-state.ts";
import { chosenBy } from "./chosen.ts";
import { breakersOf } from "./ending.ts";
import { type CandidateDeps, type Found, untilWritten, writtenOf, wrongState } from "./found.ts";
import { reopenIfLeft } from "./reopen.ts";
import { handMoveRefusal, isExecutionStatus } from "./transitions.ts";

export interface UpdateDeps extends CandidateDeps {
  readonly catalogue: Pick<Catalogue, "get" | "all">;
  readonly topics: Pick<TopicStore, "reset">;
  readonly ids: () => string;
}

type Change = { readonly patch: CandidatePatch; readonly provenance: readonly NewProvenance[] };

export type Update = (candidateId: number, update: CandidateUpdate) => Promise<Candidate>;

export function createUpdate(deps: UpdateDeps): Update {
  async function select(found: Found, code: string, by: CandidateUpdate): Promise<Change> {
    const { candidate, group } = found;
    const { candidateId, groupId } = candidate;
    if (candidate.decision === "rejected" || candidate.executionStatus !== "pending") {
      throw wrongState(candidate, `Candidate ${candidateId} is decided or executed: its action can no longer be changed.`);
    }
    const action = await deps.catalogue.get(code);
    if (action === null)
      throw notFound(
        code,
        (await deps.catalogue.all()).map((each) => each.actionCode),
      );
    if (!action.isActive || action.risk === "forbidden") {
      throw new MakegoodError("action_refused", `The action ${code} is ${action.isActive ? "forbidden" : "disabled"}.`, {
        action: code,
      });
    }
    const { evaluation, confidence } = chosenBy(candidate, code, by.actor);
    const said = { candidateId, groupId, action: code, reason: by.reason ?? null };
    const known = { confidenceBefore: candidate.confidence, confidenceAfter: confidence };
    const patch: CandidatePatch = {
      selectedAction: code,
      confidence,
      evaluation,
      clearApprovals: true,
      groupVersion: group.version,
      ...(candidate.decision === "approved" ? { decision: "pending" } : {}),
    };
    return { patch, provenance: [line("action_selected", by, { ...said, ...known })] };
  }

  function move(found: Found, to: string, by: CandidateUpdate): Change {
    const { candidate, action } = found;
    const { candidateId, groupId } = candidate;
    if (!isExecutionStatus(to)) {
      const detail = `must be one of ${EXECUTION_STATUSES.join(", ")}`;
      throw new MakegoodError("invalid_request", `execution_status ${detail}.`, {
        errors: [{ field: "execution_status", detail }],
      });
    }
    const refusal = handMoveRefusal(candidate, to);
    if (refusal !== null) throw wrongState(candidate, refusal);
    if (candidate.executionStatus === "unknown" && by.actorType !== "human") {
      throw wrongState(candidate, `Candidate ${candidateId} is unknown: only a person can say what became of it.`);
    }
    if (to === "rolled_back" && !action?.inverse) {
      const text = `Nothing undoes ${candidate.selectedAction}: candidate ${candidateId} cannot be rolled back.`;
      throw new MakegoodError("action_refused", text, { candidateId, action: candidate.selectedAction });
    }
    const said = { candidateId, groupId, action: candidate.selectedAction, reason: by.reason ?? null };
    const details = { from: candidate.executionStatus };
    return {
      patch: { executionStatus: to, ...(to === "rolled_back" && action?.inverse === "release" ? { heldBy: null } : {}) },
      provenance: [line(EVENTS[to] ?? to, by, { ...said, details })],
    };
  }

  /** Without an owner nobody holds the group any more. */
  function keep({ candidate, group }: Found, by: CandidateUpdate): Change {
    const { owner, note } = by;
    if (owner === undefined && note === undefined) return { patch: {}, provenance: [] };
    const { candidateId, groupId } = candidate;
    const release = owner === null && group.heldBy !== null;
    const details = { ...(owner === undefined ? {} : { owner }), ...(note === undefined ? {} : { note }) };
    return {
      patch: { owner, note, ...(release ? { heldBy: null } : {}) },
      provenance: [line(release ? "released" : "updated", by, { candidateId, groupId, reason: by.reason ?? null, details })],
    };
  }

  async function once(found: Found, update: CandidateUpdate): Promise<Candidate | "again"> {
    const { candidate, group, action } = found;
    const { candidateId, version } = candidate;
    const { selectedAction, executionStatus } = update;
    const changes = [
      ...(selectedAction === undefined ? [] : [await select(found, selectedAction, update)]),
      ...(executionStatus === undefined ? [] : [move(found, executionStatus, update)]),
      keep(found, update),
    ];
    const patch: CandidatePatch = Object.assign({}, ...changes.map((change) => change.patch));
    const provenance = changes.flatMap((change) => change.provenance);
    if (provenance.length === 0) return candidate;
    // Before the write: what is rolled back cannot be asked for again, and closing a closed breaker does nothing.
    if (patch.executionStatus === "rolled_back" && action?.inverse === "close_breaker") {
      const breakers = breakersOf(candidate);
      for (const topic of breakers.length > 0 ? breakers : [group.topic]) await deps.topics.reset(topic);
    }
    const written = await deps.recovery.write({ candidateId, version, patch, provenance });
    if (written.kind === "version_conflict") return "again";
    const after = writtenOf(candidateId, written);
    const { executionStatus: now } = patch;
    const why = now === "failed" || now === "rolled_back" ? `its execution is ${now}` : released(group, patch);
    if (why !== null || now === "succeeded") await reopenIfLeft(deps.recovery, { ids: deps.ids }, after, why);
    return after;
  }

  return (candidateId, update) => untilWritten(deps, candidateId, update.version, (found) => once(found, update));
}

/** A hold is taken off the way it came: as a change of the group's candidate. */
export async function release(
  { recovery, update }: { readonly recovery: Pick<Records, "group" | "candidateOf">; readonly update: Update },
  groupId: number,
  by: Omit<Versioned, "version">,
): Promise<Group> {
  const asked = await existingGroup(recovery, groupId);
  const { heldBy } = asked.mergedInto === null ? asked : await existingGroup(recovery, asked.mergedInto);
  const latest = heldBy === null ? null : await recovery.candidateOf(groupId);
  if (latest === null) {
    const text = `Group ${groupId} is held by nobody: there is nothing to release.`;
    throw new MakegoodError("wrong_state", text, { groupId });
  }
  await update(latest.candidateId, { ...by, owner: null });
  return existingGroup(recovery, latest.groupId);
}

const released = ({ heldBy }: Group, patch: CandidatePatch): string | null =>
  patch.heldBy === null && heldBy !== null ? `${heldBy} does not hold it any more` : null;

const EVENTS: Partial<Record<ExecutionStatus, string>> = { succeeded: "executed", failed: "executed" };
