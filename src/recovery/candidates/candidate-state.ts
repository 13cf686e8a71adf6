/**
 * The states of a candidate, its approvals, and the size of one ingest. Which moves there are at all, the table's own fence knows (migration
 * 6); which of them people may make, transitions.ts.
 */
import type { Candidate } from "./candidate.ts";

export const DECISIONS = ["pending", "approved", "rejected"] as const;
export const EVALUATION_STATUSES = ["unevaluated", "evaluating", "evaluated", "failed"] as const;
/** `unknown`: it was running when its process died; a person must say what became of it (DR-5). */
export const EXECUTION_STATUSES = ["pending", "executing", "succeeded", "failed", "rolled_back", "skipped", "unknown"] as const;

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
