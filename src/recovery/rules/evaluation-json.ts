/**
 * An evaluation as JSON, in the snake_case of the API: what is recommended and how sure that is, the alternatives, and of each rule
 * whether it matched, on which fields, and what it contributed. The same form is kept with a candidate and shown by the server.
 */
import type { Cause } from "../causes/cause.ts";
import type { Evaluation, RuleResult, Suggestion } from "./evaluate.ts";

export interface SuggestionJson {
  readonly action: string;
  readonly confidence: number;
  /** The score of the first rule that proposes it, and how many observations stand behind the confidence. */
  readonly prior: number;
  readonly weight: number;
  readonly rules: readonly string[];
  readonly contributions: readonly { readonly from: string; readonly weight: number; readonly mean: number }[];
}

export interface RuleResultJson {
  readonly rule_id: string;
  readonly version: number;
  readonly priority: number;
  readonly matched: boolean;
  readonly skipped: string | null;
  readonly facts: RuleResult["facts"];
  readonly contribution: RuleResult["contribution"];
}

export interface EvaluationJson {
  readonly recommended_action: string | null;
  readonly confidence: number;
  readonly recommended: SuggestionJson | null;
  readonly alternatives: readonly SuggestionJson[];
  readonly rules_evaluated: readonly RuleResultJson[];
  /** What was read as the error code, and its classes. */
  readonly error_code: string;
  readonly error_classes: readonly string[];
  /** What is wrong and where, how certain that is, and by which signature. */
  readonly cause: Cause;
  readonly cause_detail: string | null;
  readonly cause_certainty: number;
  readonly cause_evidence: string;
  readonly cause_signature: string | null;
  readonly notes: readonly string[];
}

export function evaluationToJson(evaluation: Evaluation): EvaluationJson {
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

function suggestionJson({ action, confidence, prior, weight, rules, contributions }: Suggestion): SuggestionJson {
  return { action, confidence, prior, weight, rules, contributions };
}

function ruleJson({ ruleId, version, priority, matched, skipped, facts, contribution }: RuleResult): RuleResultJson {
  return { rule_id: ruleId, version, priority, matched, skipped: skipped ?? null, facts, contribution };
}
