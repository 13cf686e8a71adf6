/**
 * The moves of appendix E that a person may write; the engine alone begins and ends executions. `unknown` is ours: it was running
 * when its process died, and only a person says what became of it. The store has the whole machine as a second fence.
 */
import type { Candidate, ExecutionStatus } from "./candidate.ts";

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
  return Object.hasOwn(BY_HAND, word);
}

/** Why a person may not write this status; null: it is allowed. */
export function handMoveRefusal(
  { candidateId, executionStatus: from }: Pick<Candidate, "candidateId" | "executionStatus">,
  to: ExecutionStatus,
): string | null {
  const allowed = BY_HAND[from];
  if (allowed.includes(to)) return null;
  return `Candidate ${candidateId} is ${from} and cannot become ${to}: ${remedy(from, to, allowed)}.`;
}

function remedy(from: ExecutionStatus, to: ExecutionStatus, allowed: readonly ExecutionStatus[]): string {
  if (to === "executing") return "execute it instead";
  if (allowed.length > 0) return `from there only ${allowed.join(" or ")} can be written`;
  return from === "executing" ? "wait for it, or cancel its redrive" : "it is at its end";
}
