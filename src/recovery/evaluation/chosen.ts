/**
 * An action that a person chose instead of the suggestion. It is kept in the evaluation's record, so that the next evaluation tells what
 * it would suggest and leaves the choice alone.
 */
import type { Candidate } from "../../store/recovery.ts";
import type { EvaluationJson } from "../rules/evaluation-json.ts";

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

/** How sure the last evaluation was of an action; null: it said nothing of it. */
export function confidenceOf(candidate: Pick<Candidate, "evaluation">, action: string): number | null {
  const { recommended, alternatives = [] } = kept(candidate);
  return [...(recommended ? [recommended] : []), ...alternatives].find((each) => each.action === action)?.confidence ?? null;
}

export function chosenBy(
  candidate: Pick<Candidate, "evaluation">,
  action: string,
  actor: string,
): { readonly evaluation: string; readonly confidence: number | null } {
  const evaluation = JSON.stringify({ ...kept(candidate), selected_by: actor });
  return { evaluation, confidence: confidenceOf(candidate, action) };
}
