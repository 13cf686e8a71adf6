/**
 * What the engines of the recovery seam must agree on about a candidate's states and approvals, and the size of one ingest. The moves are a second
 * fence, wider than the policy of recovery/: they refuse what no policy may do.
 */
import type { Candidate, Decision, EvaluationStatus, ExecutionStatus } from "./candidate.ts";

export const DECISIONS: readonly Decision[] = ["pending", "approved", "rejected"];
export const EVALUATION_STATUSES: readonly EvaluationStatus[] = ["unevaluated", "evaluating", "evaluated", "failed"];
export const EXECUTION_STATUSES: readonly ExecutionStatus[] = [
  "pending",
  "executing",
  "succeeded",
  "failed",
  "rolled_back",
  "skipped",
  "unknown",
];

export interface Approval {
  readonly actor: string;
  readonly at: Date;
  readonly note: string | null;
  /** How many failures the group had when it was given; null: not said. */
  readonly occurrenceCount: number | null;
}

/** The most occurrences of one ingest; more throw `invalid_request`. */
export const INGEST_MAX = 200;

/** Nothing more happens to it: rejected, or executed to an end. An `unknown` one is open until a person ends it. */
export function isClosed({ decision, executionStatus }: Pick<Candidate, "decision" | "executionStatus">): boolean {
  return decision === "rejected" || ["succeeded", "failed", "rolled_back", "skipped"].includes(executionStatus);
}

/** While it runs, or nobody knows whether it ran, its group stays as it is. */
export function isExecuting({ executionStatus }: Pick<Candidate, "executionStatus">): boolean {
  return executionStatus === "executing" || executionStatus === "unknown";
}

/** An evaluation can be asked for again at any time. */
const EVALUATION_MOVES: Readonly<Record<EvaluationStatus, readonly EvaluationStatus[]>> = {
  unevaluated: ["evaluating"],
  evaluating: ["evaluated", "failed", "unevaluated"],
  evaluated: ["unevaluated"],
  failed: ["evaluating", "unevaluated"],
};

/** An execution never begins twice (DR-1); `unknown` is ended by a person. */
const EXECUTION_MOVES: Readonly<Record<ExecutionStatus, readonly ExecutionStatus[]>> = {
  pending: ["executing", "skipped"],
  executing: ["succeeded", "failed", "rolled_back", "skipped", "unknown"],
  unknown: ["succeeded", "failed"],
  succeeded: ["rolled_back"],
  failed: ["rolled_back"],
  rolled_back: [],
  skipped: [],
};

type Stand = Pick<Candidate, "decision" | "evaluationStatus" | "executionStatus" | "executionId">;

/** Why a candidate cannot move from one to the other; null: it can. */
export function forbiddenMove(from: Stand, to: Stand): string | null {
  const moved = <T>(before: T, after: T, moves: readonly T[]): boolean => before === after || moves.includes(after);
  if (from.decision === "rejected" && to.decision !== "rejected") return `it was rejected and cannot become ${to.decision}`;
  if (!moved(from.evaluationStatus, to.evaluationStatus, EVALUATION_MOVES[from.evaluationStatus])) {
    return `its evaluation is ${from.evaluationStatus} and cannot become ${to.evaluationStatus}`;
  }
  if (!moved(from.executionStatus, to.executionStatus, EXECUTION_MOVES[from.executionStatus])) {
    return `its execution is ${from.executionStatus} and cannot become ${to.executionStatus}`;
  }
  if (to.executionStatus !== "executing") return null;
  if (to.decision === "rejected") return "it was rejected and cannot be executed";
  return to.executionId === null ? "it cannot be executed without an execution id" : null;
}
