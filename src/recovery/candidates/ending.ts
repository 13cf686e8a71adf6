/** What is kept with an execution, how it ends on record, and the room that it makes for the next suggestion. */
import type { Clock } from "../../platform/clock.ts";
import type { ActionPlan } from "../actions/action.ts";
import { isResolved } from "../groups/group.ts";
import { line, SYSTEM } from "../provenance.ts";
import type { Records } from "../records.ts";
import type { Actor } from "../recovery.ts";
import type { Candidate } from "./candidate.ts";
import { type ExecutionStatus, isClosed } from "./candidate-state.ts";
import type { Change } from "./found.ts";

/** Kept with the claim, so that another process can carry on or end the execution of one that was killed. */
export interface Started {
  readonly hold?: ActionPlan["hold"];
  /** The topics whose breakers this execution opened, or was about to open. */
  readonly breakers?: readonly string[] | undefined;
  /** Reported failures are sent again: the first few alone, then the rest unless too many of those failed. */
  readonly sends?: Sends | undefined;
  /** Who reported so many failures carries it out. */
  readonly reports?: number | undefined;
}

export interface Sends {
  readonly through: number;
  readonly canary: number;
  readonly failureShareMax: number;
  readonly notBeforeMs: number;
}

interface Kept extends Started {
  readonly redrive_status?: string;
  readonly healed?: number;
  readonly failed?: number;
}

/** What the claim writes as the result while there is none yet. */
export function startText(started: Started): string | null {
  return Object.values(started).every((each) => each === undefined) ? null : JSON.stringify({ status: "executing", ...started });
}

/** Of an execution that runs, what it was started with. */
export const resultOf = ({ executionResult }: Pick<Candidate, "executionResult">) => JSON.parse(executionResult ?? "{}") as Kept;

/** A person ended its redrive: what comes next on this group is a person's too. */
export const wasCancelled = (candidate: Candidate): boolean => resultOf(candidate).redrive_status === "cancelled";

/** Whether it did more good than harm; what touched nothing did neither. */
export function endedBy({ healed, failed }: { readonly healed: number; readonly failed: number }): ExecutionStatus {
  if (healed + failed === 0) return "skipped";
  return healed > 0 && healed >= failed ? "succeeded" : "failed";
}

export interface Ending {
  readonly result: Readonly<Record<string, unknown>>;
  readonly hold?: ActionPlan["hold"];
  readonly durationMs: number | null;
  /** How sure the action is with what this execution taught. */
  readonly confidenceAfter: number | null;
}

export const tookMs = ({ executedAt }: Candidate, clock: Clock): number | null =>
  executedAt && Math.max(0, clock.wallMs() - executedAt.getTime());

export function ending(candidate: Candidate, status: ExecutionStatus, by: Actor, { result, hold, ...known }: Ending): Change {
  const { candidateId, groupId, redriveId, selectedAction: action, confidence: confidenceBefore } = candidate;
  const details = { ...result, ...(hold && { held_by: hold.owner }) };
  const event = status === "unknown" ? "execution_unknown" : "executed";
  return {
    patch: {
      executionStatus: status,
      leaseMs: null,
      executionResult: JSON.stringify({ status, ...details }),
      ...(hold && { heldBy: hold.owner, owner: hold.owner, note: hold.note }),
    },
    provenance: [line(event, by, { candidateId, groupId, redriveId, action, confidenceBefore, ...known, details })],
  };
}

/**
 * Failures that came in while it was executing were counted and opened nothing, and what a person cancelled was not sent: where dead
 * letters are left, there is a suggestion again. Asked again it does nothing more, so any process completes what a killed one left.
 * `why` there must be one in any case.
 */
export async function reopenIfLeft(
  deps: { readonly recovery: Pick<Records, "group" | "candidateOf" | "reopen">; readonly ids: () => string },
  { groupId, candidateId, executedAt }: Candidate,
  why: string | null = null,
): Promise<boolean> {
  const { recovery, ids } = deps;
  const group = await recovery.group(groupId);
  if (!group || group.mergedInto !== null || group.openMessages + group.openReports === 0 || isResolved(group)) return false;
  const latest = await recovery.candidateOf(groupId);
  if (latest?.candidateId !== candidateId || !isClosed(latest)) return false;
  const newer = executedAt !== null && group.lastAt > executedAt;
  const meanwhile = newer ? "failures of this group came in while its candidate was executing" : null;
  const reason = why ?? meanwhile ?? (wasCancelled(latest) ? "its execution was cancelled, and dead letters are left" : null);
  if (reason === null) return false;
  return (await recovery.reopen(groupId, { ids }, [line("reopened", SYSTEM, { groupId, reason })])) !== null;
}
