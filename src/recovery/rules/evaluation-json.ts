/** An evaluation as JSON, in the snake_case of the API: the same form is kept with a candidate and shown by the server. */
import type { Evaluation, RuleResult, Suggestion } from "./evaluate.ts";

export type SuggestionJson = ReturnType<typeof suggestionJson>;
export type EvaluationJson = ReturnType<typeof evaluationToJson>;

export function evaluationToJson(evaluation: Evaluation) {
  const { recommended, confidence, alternatives, rulesEvaluated, errorCode, errorClasses, cause, notes } = evaluation;
  return {
    recommended_action: recommended?.action ?? null,
    confidence,
    recommended: recommended === undefined ? null : suggestionJson(recommended),
    alternatives: alternatives.map(suggestionJson),
    rules_evaluated: rulesEvaluated.map(ruleJson),
    error_code: errorCode,
    error_classes: errorClasses,
    cause: cause.cause,
    cause_detail: cause.detail,
    cause_certainty: cause.certainty,
    cause_evidence: cause.evidence,
    cause_signature: cause.signature,
    notes,
  };
}

function suggestionJson({ action, confidence, prior, weight, rules, contributions }: Suggestion) {
  return { action, confidence, prior, weight, rules, contributions };
}

function ruleJson({ ruleId, version, priority, matched, skipped, facts, contribution }: RuleResult) {
  return { rule_id: ruleId, version, priority, matched, skipped: skipped ?? null, facts, contribution };
}
