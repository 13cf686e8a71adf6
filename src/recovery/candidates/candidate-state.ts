/** The states of a candidate and the moves that people may make; the table's own fence has the whole machine (migration 6). */

export const DECISIONS = ["pending", "approved", "rejected"] as const;
export const EVALUATION_STATUSES = ["unevaluated", "evaluating", "evaluated", "failed"] as const;
/** `unknown`: it was running when its process died; a person must say what became of it (DR-5). */
export const EXECUTION_STATUSES = ["pending", "executing", "succeeded", "failed", "rolled_back", "skipped", "unknown"] as const;

export type Decision = (typeof DECISIONS)[number];
export type EvaluationStatus = (typeof EVALUATION_STATUSES)[number];
export type ExecutionStatus = (typeof EXECUTION_STATUSES)[number];

interface State {
  readonly decision: Decision;
  readonly executionStatus: ExecutionStatus;
}

/** The most occurrences of one ingest; more throw `invalid_request`. */
export const INGEST_MAX = 200;

/** Nothing more happens to it: rejected, or executed to an end. An `unknown` one is open until a person ends it. */
export function isClosed({ decision, executionStatus }: State): boolean {
  return decision === "rejected" || ["succeeded", "failed", "rolled_back", "skipped"].includes(executionStatus);
}

/** While it runs, or nobody knows whether it ran, its group stays as it is. */
export function isExecuting({ executionStatus }: Pick<State, "executionStatus">): boolean {
  return executionStatus === "executing" || executionStatus === "unknown";
}

/** A candidate that a person decided about, or that is being executed, is not evaluated again. */
export function isEvaluable({ decision, executionStatus }: State): boolean {
  return decision === "pending" && executionStatus === "pending";
}

/** Of appendix E; the engine alone begins and ends executions. */
const BY_HAND: Readonly<Record<ExecutionStatus, readonly string[]>> = {
  pending: ["skipped"],
  executing: [],
  unknown: ["succeeded", "failed"],
  succeeded: ["rolled_back"],
  failed: ["rolled_back"],
  rolled_back: [],
  skipped: [],
};

export function handMoveRefusal(candidateId: number, from: ExecutionStatus, to: string): string | null {
  const allowed = BY_HAND[from];
  if (allowed.includes(to)) return null;
  return `Candidate ${candidateId} is ${from} and cannot become ${to}: ${remedy(from, to, allowed)}.`;
}

function remedy(from: ExecutionStatus, to: string, allowed: readonly string[]): string {
  if (to === "executing") return "execute it instead";
  if (allowed.length > 0) return `from there only ${allowed.join(" or ")} can be written`;
  return from === "executing" ? "wait for it, or cancel its redrive" : "it is at its end";
}
