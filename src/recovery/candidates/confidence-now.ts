/** How sure a candidate's action is by now. For the record of an execution, so that it says what it taught. */

import type { Group } from "../groups/group.ts";
import type { Records } from "../records.ts";
import type { Candidate } from "./candidate.ts";
import type { EvaluateFailure, FailureFacts } from "./evaluate-failure.ts";

export type ConfidenceNow = (candidate: Candidate) => Promise<number | null>;

/** A group as its newest failure tells of it. */
export async function newestFailure(recovery: Pick<Records, "occurrences">, group: Group): Promise<FailureFacts> {
  const { data } = await recovery.occurrences(group.groupId, { limit: 1 });
  const { errorCode, topic, template, occurrenceCount } = group;
  const { errorMessage = template, stackTrace = null, skillId = null } = data[0] ?? {};
  return { errorCode, topic, occurrenceCount, errorMessage, stackTrace, skillId };
}

export function createConfidenceNow(recovery: Pick<Records, "occurrences" | "group">, evaluate: EvaluateFailure): ConfidenceNow {
  return async ({ groupId, selectedAction, evaluation }) => {
    const group = selectedAction === null || evaluation === null ? null : await recovery.group(groupId);
    if (group === null) return null;
    const { ranked } = (await evaluate(await newestFailure(recovery, group), group)).evaluation;
    return ranked.find(({ action }) => action === selectedAction)?.confidence ?? null;
  };
}
