/** A candidate with its group, its action and the approvals that stand; and a change to it, made although others write too. */
import { MakegoodError } from "../../message/errors.ts";
import type { Events } from "../../observe/events.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { TopicStore } from "../../store/topics.ts";
import { approvalsNeeded } from "../actions/applies.ts";
import type { Catalogue, CatalogueAction } from "../actions/catalogue.ts";
import type { FailurePlaces } from "../failures/place-failures.ts";
import type { Group } from "../groups/group.ts";
import type { Hooks } from "../hooks.ts";
import type { Records } from "../records.ts";
import type { Actor } from "../recovery.ts";
import type { Redrives } from "../redrive/redrives.ts";
import { REDRIVE_LIMITS } from "../redrive/request.ts";
import type { RuleBook } from "../rules/rule-documents.ts";
import type { RecoverySettings } from "../settings.ts";
import { type Candidate, lineOf } from "./candidate.ts";
import type { CandidateWrite, CandidateWritten } from "./candidates-sql.ts";

export interface CandidateDeps {
  readonly recovery: Records;
  readonly topics: TopicStore;
  readonly catalogue: Pick<Catalogue, "get" | "all">;
  readonly ruleBook: Pick<RuleBook, "set">;
  readonly places: Pick<FailurePlaces, "look">;
  readonly redrives: Pick<Redrives, "startForExecution">;
  readonly hooks: Hooks;
  readonly events: Events;
  readonly clock: Clock;
  readonly random: Random;
  readonly ids: () => string;
  readonly settings: RecoverySettings;
  /** The engine's own topics must exist before an evaluation is queued. */
  readonly prepare: () => Promise<void>;
}

/** An approval is about what was seen: it stands while no more than this share came to it. */
const GROWTH_SHARE_MAX = 0.1;

/** I10: how often a write is tried again because another one came in between. */
const TRIES_MAX = 10;

export type Found = Awaited<ReturnType<typeof find>>;

/** `version`: refused when it has another; `instead`: as if this were the selected action. */
export async function find(deps: CandidateDeps, candidateId: number, version?: number, instead?: string) {
  const { recovery, catalogue, clock, settings } = deps;
  const kept = await recovery.candidate(candidateId);
  const group = kept && (await recovery.group(kept.groupId));
  if (!kept || !group) throw notFound(candidateId);
  if (version !== undefined && version !== kept.version) throw changed("It", kept);
  const candidate: Candidate = { ...kept, selectedAction: instead ?? kept.selectedAction };
  /** The selected action as the catalogue has it; null: none is selected, or it is gone. */
  const action = candidate.selectedAction === null ? null : await catalogue.get(candidate.selectedAction);
  // Approvals are dated by the store, which is at least as far as its last write; a clock of ours that is behind makes none of them younger.
  const nowMs = Math.max(clock.wallMs(), candidate.updatedAt.getTime(), group.lastAt.getTime());
  const standing = standingOf(candidate, group, action, { nowMs, approvalMs: settings.approvalMs });
  return { candidate, suggested: kept.selectedAction, group, action, standing };
}

/** The action, or why there is nothing to decide about. */
export function actionOf({ candidate, action }: Found): CatalogueAction {
  const { candidateId, selectedAction, evaluationStatus } = candidate;
  if (selectedAction === null) {
    const text = `Candidate ${candidateId} has no action yet: wait for its evaluation, or select one.`;
    throw new MakegoodError("wrong_state", text, { candidateId, evaluationStatus });
  }
  if (action === null) {
    const text = `Candidate ${candidateId} names the action ${selectedAction}, which is not in the catalogue: select another.`;
    throw new MakegoodError("action_not_found", text, { candidateId, action: selectedAction });
  }
  if (action.isActive && action.risk !== "forbidden") return action;
  const why = action.isActive ? "forbidden" : "disabled";
  const text = `The action ${selectedAction} of candidate ${candidateId} is ${why}: select another.`;
  throw new MakegoodError("action_refused", text, { candidateId, action: selectedAction });
}

export function wrongState({ candidateId, decision, executionStatus }: Candidate, text: string): MakegoodError {
  return new MakegoodError("wrong_state", text, { candidateId, decision, executionStatus });
}

function notFound(candidateId: number): MakegoodError {
  return new MakegoodError("candidate_not_found", `There is no candidate ${candidateId}.`, { candidateId });
}

/** The candidate after a write, or the error that says why there was none. */
export function writtenOf(candidateId: number, written: CandidateWritten): Candidate {
  if (written.kind === "done") return written.candidate;
  if (written.kind === "not_found") throw notFound(candidateId);
  const { executionStatus, executionId } = written.candidate;
  if (written.kind === "lease_over") {
    const text = `This outcome of candidate ${candidateId} comes too late: it is ${executionStatus} and its lease is over. A person who knows what happened can set its status (PATCH execution_status); what still fails can be reported again.`;
    throw new MakegoodError("wrong_state", text, { candidateId, executionStatus, executionId });
  }
  if (written.kind === "over_budget") {
    const text = `Candidate ${candidateId} was not executed: this hour's limit of executions without a person is reached.`;
    throw new MakegoodError("over_budget", text, { candidateId });
  }
  throw changed(written.kind === "group_changed" ? "Its group" : "It", written.candidate);
}

function changed(what: string, { candidateId, version }: Candidate): MakegoodError {
  const text = `Candidate ${candidateId} has version ${version} now. ${what} changed since it was read: read it again, then decide.`;
  return new MakegoodError("version_conflict", text, { candidateId, version });
}

/** What an execution would touch now; `seen`: of what a person saw. A `limit` reads no further: that number then means so many or more. */
export function blastRadiusOf(
  { redrives }: Pick<Records, "redrives">,
  groupId: number,
  { limit = REDRIVE_LIMITS.messagesMax, seen }: { readonly limit?: number; readonly seen?: string | undefined } = {},
) {
  return redrives.preview({ groupId, limit, seen, includeHeld: true, generationMax: REDRIVE_LIMITS.generationMax });
}

export type Change = Omit<CandidateWrite, "candidateId" | "version">;

/** Reads and writes until no other write comes in between, but under the version that a caller names. `changeOf`: null leaves it as it is. */
export async function change(
  deps: CandidateDeps,
  candidateId: number,
  version: number | undefined,
  changeOf: (found: Found) => Change | null | Promise<Change | null>,
): Promise<Found & { readonly changed: boolean }> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const found = await find(deps, candidateId, version);
    const asked = await changeOf(found);
    if (asked === null) return { ...found, changed: false };
    const written = await deps.recovery.write({ candidateId, version: found.candidate.version, ...asked });
    if (written.kind === "version_conflict" || written.kind === "group_changed") continue;
    return { ...found, candidate: writtenOf(candidateId, written), changed: true };
  }
  throw new MakegoodError("version_conflict", `Candidate ${candidateId} changes all the time: try again later.`, { candidateId });
}

/** Approvals stand for the group as it is, for their time, and while it is about as large as when it was looked at. `system` never counts. */
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
  let lapsedReason = null;
  if (lapsed && !same) lapsedReason = "its group changed";
  else if (grown) lapsedReason = `its group had ${seen} failures then and has ${group.occurrenceCount} now`;
  else if (lapsed) lapsedReason = "it was too long ago";
  return { approvals, lapsed, lapsedReason, needed, missing };
}

export function approvalRefusal(candidateId: number, { missing, needed, lapsedReason }: Found["standing"]): string | null {
  if (missing === 0) return null;
  if (lapsedReason !== null) return `The approval of candidate ${candidateId} has lapsed (${lapsedReason}): approve it again.`;
  const people = needed === 1 ? "one person" : "two different people";
  return `Candidate ${candidateId} needs the approval of ${people}; ${missing} more must approve.`;
}

/** What was approved for something else is taken back, on record, before it is refused. */
export async function refuseUnapproved(
  { write }: Records,
  { candidate, standing }: Found,
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
