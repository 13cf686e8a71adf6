/**
 * An action that a person chose instead of the suggestion. It is kept in the evaluation's record, so that the next evaluation tells what
 * it would suggest and leaves the choice alone; nothing that a person chose runs by itself.
 */

import type { EvaluationJson, SuggestionJson } from "../rules/evaluation-json.ts";
import type { AutoExecutionRecord } from "./auto-execution.ts";
import type { Candidate } from "./candidate.ts";

export interface KeptEvaluation extends EvaluationJson {
  /** Who chose the action; absent: the engine did. */
  readonly selected_by?: string;
}

function kept({ evaluation }: Pick<Candidate, "evaluation">): Partial<KeptEvaluation> {
  try {
    return evaluation === null ? {} : (JSON.parse(evaluation) as KeptEvaluation);
  } catch {
    return {};
  }
}

export function chooserOf(candidate: Pick<Candidate, "evaluation">): string | null {
  return kept(candidate).selected_by ?? null;
}

/** What the last evaluation said of an action; null: nothing, or there was none. */
export function suggestionOf(candidate: Pick<Candidate, "evaluation">, action: string): SuggestionJson | null {
  const { recommended, alternatives = [] } = kept(candidate);
  return [...(recommended ? [recommended] : []), ...alternatives].find((each) => each.action === action) ?? null;
}

/** What an automatic run tries in place of the suggestion, kept with the evaluation. */
export function exploredBy(candidate: Pick<Candidate, "evaluation">, suggested: string | null): { readonly evaluation: string } {
  return { evaluation: JSON.stringify({ ...kept(candidate), explored: { instead_of: suggested } }) };
}

export function chosenBy(
  candidate: Pick<Candidate, "evaluation">,
  action: string,
  actor: string,
): { readonly evaluation: string; readonly confidence: number | null } {
  // What was allowed was the suggestion: an evaluation that is delivered later must not run this in its place.
  const auto: AutoExecutionRecord = { allowed: false, refusals: ["no_action"] };
  const evaluation = JSON.stringify({ ...kept(candidate), auto_execution: auto, selected_by: actor });
  return { evaluation, confidence: suggestionOf(candidate, action)?.confidence ?? null };
}
