/**
 * How sure a candidate's action is by now: the prior it was evaluated with, and what was learned since. For the record of an execution, so
 * that it says what it taught.
 */

import { confidence, type Evidence, PRIOR_WITHOUT_RULE } from "../confidence/confidence.ts";
import { HALF_LIFE_MS } from "../confidence/outcome-counts.ts";
import type { Records } from "../records.ts";
import type { Candidate } from "./candidate.ts";
import { suggestionOf } from "./chosen.ts";
import { outcomesOf } from "./evaluate-failure.ts";

export async function confidenceNow(
  recovery: Pick<Records, "outcomes">,
  candidate: Candidate,
  at: number,
): Promise<number | null> {
  const { groupId, selectedAction, evaluation } = candidate;
  if (selectedAction === null || evaluation === null) return null;
  const suggested = suggestionOf(candidate, selectedAction);
  const learned: Evidence =
    outcomesOf(await recovery.outcomes(groupId, HALF_LIFE_MS)).find((each) => each.action === selectedAction) ?? {};
  // Where no rule says that it fits, only outcomes from here count, as in its evaluation.
  const byRule = suggested !== null && suggested.rules.length > 0;
  const evidence = byRule ? learned : { ...(learned.own && { own: learned.own }) };
  return confidence(suggested?.prior ?? PRIOR_WITHOUT_RULE, evidence, at).confidence;
}
