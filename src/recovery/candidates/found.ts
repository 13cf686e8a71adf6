/** A candidate with its group, its action and the approvals that stand; and a change to it, made although others write too. */
import { MakegoodError } from "../../message/errors.ts";
import type { Events } from "../../observe/events.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { TopicStore } from "../../store/topics.ts";
import type { Catalogue, CatalogueAction } from "../actions/catalogue.ts";
import type { FailurePlaces } from "../failures/place-failures.ts";
import type { Hooks } from "../hooks.ts";
import type { Records } from "../records.ts";
import type { RedrivePreview } from "../redrive/redrive.ts";
import type { Redrives } from "../redrive/redrives.ts";
import { REDRIVE_LIMITS } from "../redrive/request.ts";
import type { RuleBook } from "../rules/rule-documents.ts";
import type { RecoverySettings } from "../settings.ts";
import { standingOf } from "./approvals.ts";
import type { Candidate, CandidateWrite, CandidateWritten } from "./candidate.ts";

/** What the operations of this folder are given. */
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

export type Found = Awaited<ReturnType<typeof find>>;

/** `instead`: as if this were the selected action. */
export async function find({ recovery, catalogue, clock, settings }: CandidateDeps, candidateId: number, instead?: string) {
  const kept = await recovery.candidate(candidateId);
  const group = kept && (await recovery.group(kept.groupId));
  if (!kept || !group) throw notFound(candidateId);
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

export function refuseOtherVersion({ candidate }: Found, version: number | undefined): void {
  if (version !== undefined && version !== candidate.version) {
    writtenOf(candidate.candidateId, { kind: "version_conflict", candidate });
  }
}

/** What an execution would touch now; `seen`: of what a person saw. A `limit` reads no further: that number then means so many or more. */
export function blastRadiusOf(
  { redrives }: Pick<Records, "redrives">,
  groupId: number,
  { limit = REDRIVE_LIMITS.messagesMax, seen }: { readonly limit?: number; readonly seen?: string | undefined } = {},
): Promise<RedrivePreview> {
  return redrives.preview({ groupId, limit, seen, includeHeld: true, generationMax: REDRIVE_LIMITS.generationMax });
}

export type Change = Omit<CandidateWrite, "candidateId" | "version">;

/** I10: how often a write is tried again because another one came in between. */
const TRIES_MAX = 10;

/**
 * Reads and writes until no other write came in between; `changeOf` answers null where it stays as it is. A caller that names a version
 * is refused as soon as it is another.
 */
export async function change(
  deps: CandidateDeps,
  candidateId: number,
  version: number | undefined,
  changeOf: (found: Found) => Change | null | Promise<Change | null>,
): Promise<Found & { readonly changed: boolean }> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const found = await find(deps, candidateId);
    refuseOtherVersion(found, version);
    const asked = await changeOf(found);
    if (asked === null) return { ...found, changed: false };
    const written = await deps.recovery.write({ candidateId, version: found.candidate.version, ...asked });
    if (written.kind === "version_conflict" || written.kind === "group_changed") continue;
    return { ...found, candidate: writtenOf(candidateId, written), changed: true };
  }
  throw new MakegoodError("version_conflict", `Candidate ${candidateId} changes all the time: try again later.`, { candidateId });
}
