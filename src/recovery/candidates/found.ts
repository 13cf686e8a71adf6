/**
 * Reads a candidate with what belongs to it, or says that it is not there; and makes a refused write into the error that says
 * why.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Catalogue, CatalogueAction } from "../actions/catalogue.ts";
import type { Group } from "../groups/group.ts";
import { line } from "../provenance.ts";
import type { Records } from "../records.ts";
import type { Actor } from "../recovery.ts";
import type { RedrivePreview } from "../redrive/redrive.ts";
import { REDRIVE_LIMITS } from "../redrive/request.ts";
import { approvalRefusal, type Standing, standingOf } from "./approvals.ts";
import type { Candidate, CandidateWritten } from "./candidate.ts";

export interface CandidateDeps {
  readonly recovery: Records;
  readonly catalogue: Pick<Catalogue, "get">;
  readonly clock: Clock;
  readonly approvalMs: number;
}

export interface Found {
  readonly candidate: Candidate;
  /** What is selected, whatever is asked about in its place. */
  readonly suggested: string | null;
  readonly group: Group;
  /** The selected action as the catalogue has it; null: none is selected, or it is gone. */
  readonly action: CatalogueAction | null;
  readonly standing: Standing;
}

/** `instead`: as if this were the selected action. */
export async function find(
  { recovery, catalogue, clock, approvalMs }: CandidateDeps,
  candidateId: number,
  instead?: string,
): Promise<Found> {
  const kept = await recovery.candidate(candidateId);
  const candidate = kept && { ...kept, selectedAction: instead ?? kept.selectedAction };
  const group = candidate && (await recovery.group(candidate.groupId));
  if (!candidate || !group) {
    throw new MakegoodError("candidate_not_found", `There is no candidate ${candidateId}.`, { candidateId });
  }
  const action = candidate.selectedAction === null ? null : await catalogue.get(candidate.selectedAction);
  // Approvals are dated by the store, which is at least as far as its last write; a clock of ours that is behind makes none of them younger.
  const nowMs = Math.max(clock.wallMs(), candidate.updatedAt.getTime(), group.lastAt.getTime());
  const standing = standingOf(candidate, group, action, { nowMs, approvalMs });
  return { candidate, suggested: kept.selectedAction, group, action, standing };
}

/** The action, or why there is nothing to decide about. */
export function actionOf({ candidate, action }: Found): CatalogueAction {
  const { candidateId } = candidate;
  if (candidate.selectedAction === null) {
    const text = `Candidate ${candidateId} has no action yet: wait for its evaluation, or select one.`;
    throw new MakegoodError("wrong_state", text, { candidateId, evaluationStatus: candidate.evaluationStatus });
  }
  if (action === null) {
    const text = `Candidate ${candidateId} names the action ${candidate.selectedAction}, which is not in the catalogue: select another.`;
    throw new MakegoodError("action_not_found", text, { candidateId, action: candidate.selectedAction });
  }
  if (action.isActive && action.risk !== "forbidden") return action;
  const why = action.isActive ? "forbidden" : "disabled";
  throw new MakegoodError(
    "action_refused",
    `The action ${action.actionCode} of candidate ${candidateId} is ${why}: select another.`,
    {
      candidateId,
      action: action.actionCode,
    },
  );
}

/** What was approved for something else is taken back, on record, before it is refused. */
export async function refuseUnapproved(recovery: Records, { candidate, standing }: Found, by: Actor): Promise<void> {
  const { candidateId, groupId, version, decision } = candidate;
  const refusal = approvalRefusal(candidateId, standing);
  if (refusal === null) return;
  if (standing.lapsed && decision === "approved") {
    const said = { candidateId, groupId, action: candidate.selectedAction, reason: refusal };
    const patch = { decision: "pending" as const, clearApprovals: true };
    await recovery.write({ candidateId, version, patch, provenance: [line("approval_lapsed", by, said)] });
  }
  const { missing, needed, lapsed } = standing;
  throw new MakegoodError("approval_needed", refusal, { candidateId, missing, needed, lapsed });
}

export function wrongState({ candidateId, decision, executionStatus }: Candidate, text: string): MakegoodError {
  return new MakegoodError("wrong_state", text, { candidateId, decision, executionStatus });
}

/** The candidate after a write, or the error that says why there was none. */
export function writtenOf(candidateId: number, written: CandidateWritten): Candidate {
  if (written.kind === "done") return written.candidate;
  if (written.kind === "not_found") {
    throw new MakegoodError("candidate_not_found", `There is no candidate ${candidateId}.`, { candidateId });
  }
  const { version, executionStatus, executionId } = written.candidate;
  if (written.kind === "lease_over") {
    const text = `This outcome of candidate ${candidateId} comes too late: it is ${executionStatus} and its lease is over. A person who knows what happened can set its status (PATCH execution_status); what still fails can be reported again.`;
    throw new MakegoodError("wrong_state", text, { candidateId, executionStatus, executionId });
  }
  if (written.kind === "over_budget") {
    const text = `Candidate ${candidateId} was not executed: this hour's limit of executions without a person is reached.`;
    throw new MakegoodError("over_budget", text, { candidateId });
  }
  const what = written.kind === "group_changed" ? "Its group" : "It";
  const text = `Candidate ${candidateId} has version ${version} now. ${what} changed since it was read: read it again, then decide.`;
  throw new MakegoodError("version_conflict", text, { candidateId, version });
}

/**
 * What an execution would touch now; `seen`: of what a person saw. A `limit` reads no further: that number then means so many or
 * more.
 */
export function blastRadiusOf(
  { redrives }: Pick<Records, "redrives">,
  groupId: number,
  { limit = REDRIVE_LIMITS.messagesMax, seen }: { readonly limit?: number; readonly seen?: string | undefined } = {},
): Promise<RedrivePreview> {
  return redrives.preview({ groupId, limit, seen, includeHeld: true, generationMax: REDRIVE_LIMITS.generationMax });
}

/** I10: how often a write is tried again because another one came in between. */
const TRIES_MAX = 10;

/** Reads and writes until no other write came in between. A caller that names a version is refused as soon as it is another. */
export async function untilWritten(
  deps: CandidateDeps,
  candidateId: number,
  version: number | undefined,
  write: (found: Found) => Promise<Candidate | "again">,
): Promise<Candidate> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const found = await find(deps, candidateId);
    const { candidate } = found;
    if (version !== undefined && version !== candidate.version) {
      return writtenOf(candidateId, { kind: "version_conflict", candidate });
    }
    const result = await write(found);
    if (result !== "again") return result;
  }
  throw new MakegoodError("version_conflict", `Candidate ${candidateId} changes all the time: try again later.`, { candidateId });
}
