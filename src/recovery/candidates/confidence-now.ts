/** How sure a candidate's action is by now. For the record of an execution, so that it says what it taught. */

import type { Records } from "../records.ts";
import type { Candidate } from "./candidate.ts";
import { type EvaluateFailure, failureOf } from "./evaluate-failure.ts";

export type ConfidenceNow = (candidate: Candidate) => Promise<number | null>;

export function createConfidenceNow(recovery: Pick<Records, "occurrences" | "group">, evaluate: EvaluateFailure): ConfidenceNow {
  return async ({ groupId, selectedAction, evaluation }) => {
    const group = selectedAction === null || evaluation === null ? null : await recovery.group(groupId);
    if (group === null) return null;
    const { ranked } = (await evaluate(await failureOf(recovery, group), group)).evaluation;
    return ranked.find(({ action }) => action === selectedAction)?.confidence ?? null;
  };
}
