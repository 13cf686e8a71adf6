/**
 * The state machines of a candidate (appendix E) as tables: what may follow what, and why not. `unknown` is ours: it was running when
 * its process died, and only a person says what became of it (DR-5). The store has the same tables as a second fence.
 */
import type { Candidate, Decision, EvaluationStatus, ExecutionStatus } from "../../store/recovery.ts";

export const DECISION_MOVES: Readonly<Record<Decision, readonly Decision[]>> = {
  pending: ["approved", "rejected"],
  // An approval lapses when the group changed or its time is over.
  approved: ["pending", "rejected"],
  rejected: [],
};

export const EVALUATION_MOVES: Readonly<Record<EvaluationStatus, readonly EvaluationStatus[]>> = {
  unevaluated: ["evaluating"],
  evaluating: ["evaluated", "failed", "unevaluated"],
  // Asked for again: more occurrences, or somebody wants to know.
  evaluated: ["unevaluated"],
  failed: ["unevaluated", "evaluating"],
};

export const EXECUTION_MOVES: Readonly<Record<ExecutionStatus, readonly ExecutionStatus[]>> = {
  pending: ["executing", "skipped"],
  executing: ["succeeded", "failed", "rolled_back", "skipped", "unknown"],
  unknown: ["succeeded", "failed"],
  succeeded: ["rolled_back"],
  failed: ["rolled_back"],
  rolled_back: [],
  skipped: [],
};

/** What a person may write: the engine alone begins and ends executions. */
const BY_HAND: Readonly<Record<ExecutionStatus, readonly ExecutionStatus[]>> = {
  pending: ["skipped"],
  executing: [],
  unknown: ["succeeded", "failed"],
  succeeded: ["rolled_back"],
  failed: ["rolled_back"],
  rolled_back: [],
  skipped: [],
};

export function isExecutionStatus(word: string): word is ExecutionStatus {
  return Object.hasOwn(EXECUTION_MOVES, word);
}

/** Why a person may not write this status (DR-33); null: it is allowed. */
export function handMoveRefusal({ candidateId, executionStatus: from }: Candidate, to: ExecutionStatus): string | null {
  const allowed = BY_HAND[from];
  if (allowed.includes(to)) return null;
  const remedy =
    to === "executing"
      ? "execute it instead"
      : allowed.length > 0
        ? `from there only ${allowed.join(" or ")} can be written`
        : from === "executing"
          ? "wait for it, or cancel its redrive"
          : "it is at its end";
  return `Candidate ${candidateId} is ${from} and cannot become ${to}: ${remedy}.`;
}
