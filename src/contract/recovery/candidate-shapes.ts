/**
 * Candidates, evaluations and actions as they are answered: with what one needs to decide.
 */
import { z } from "zod";
import { DECISIONS, EVALUATION_STATUSES, EXECUTION_STATUSES } from "../../store/candidate-state.ts";
import * as v from "../values.ts";
import { group, occurrence, provenance } from "./group-shapes.ts";

const share = () => z.number().nullable();

export const approval = v.shape("Approval", {
  actor: z.string(),
  at: v.instant(),
  note: z.string().nullable(),
  occurrence_count: z.int().nullable().describe("how many failures the group had then"),
});

export const candidate = v.shape("Candidate", {
  candidate_id: z.int(),
  failure_match_id: z.string(),
  group_id: z.int(),
  occurrence_count: z.int(),
  topic: z.string(),
  error_code: z.string(),
  round: z.int(),
  version: z.int(),
  decision: z.enum(DECISIONS),
  approvals: z.array(approval),
  evaluation_status: z.enum(EVALUATION_STATUSES),
  evaluated_at: v.instant().nullable(),
  selected_action: z.string().nullable(),
  confidence: share(),
  execution_status: z.enum(EXECUTION_STATUSES),
  executed_at: v.instant().nullable(),
  executed_by: z.string().nullable(),
  execution_result: z.unknown(),
  redrive_id: z.string().nullable(),
  owner: z.string().nullable(),
  note: z.string().nullable(),
  group_version: z.int(),
  created_at: v.instant(),
  updated_at: v.instant(),
});

const suggestion = v.shape("Suggestion", {
  action: z.string(),
  confidence: z.number(),
  prior: z.number().describe("the score of the first rule that proposes it"),
  weight: z.number().describe("how many observations stand behind the confidence"),
  rules: z.array(z.string()).readonly(),
  contributions: z.array(z.strictObject({ from: z.string(), weight: z.number(), mean: z.number() })).readonly(),
});

const ruleResult = v.shape("RuleResult", {
  rule_id: z.string(),
  version: z.int(),
  priority: z.number(),
  matched: z.boolean(),
  skipped: z.string().nullable(),
  facts: z
    .array(
      z.strictObject({
        path: z.string(),
        field: z.string(),
        wanted: z.string(),
        found: z.string(),
        matched: z.boolean(),
      }),
    )
    .readonly(),
  contribution: z.union([
    z.strictObject({ kind: z.enum(["prior", "supports"]), action: z.string(), score: z.number() }),
    z.strictObject({ kind: z.literal("none") }),
  ]),
});

const evaluationShape = {
  recommended_action: z.string().nullable(),
  confidence: z.number(),
  recommended: suggestion.nullable(),
  alternatives: z.array(suggestion).readonly(),
  error_code: z.string().describe("what was read as the error code"),
  error_classes: z.array(z.string()).readonly(),
  notes: z.array(z.string()).readonly(),
};

export const evaluation = z
  .strictObject({ ...evaluationShape, rules_evaluated: z.array(ruleResult).readonly() })
  .meta({ id: "Evaluation" });

export const action = v.shape("Action", {
  action_code: z.string(),
  name: z.string(),
  action_type: z.string(),
  priority: z.number(),
  risk: z.enum(["safe", "risky", "forbidden"]),
  approval: z.enum(["none", "one", "two"]),
  requires_approval: z.boolean(),
  is_automated: z.boolean(),
  is_active: z.boolean(),
  applies_to_error_codes: z.array(z.string()).readonly(),
  applies_to_topics: z.array(z.string()).readonly(),
  template: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  inverse: z.string().nullable(),
  version: z.int(),
  shipped: z.boolean(),
  successes: z.number().describe("messages it touched that healed; older ones weigh less"),
  failures: z.number(),
  success_rate: share(),
  total_applications: z.int(),
});

export const blastRadius = v.shape("BlastRadius", {
  messages: z.int(),
  over_generation: z.int().describe("left out, because they were replayed often enough"),
  topics: z.array(z.strictObject({ topic: z.string(), messages: z.int() })).readonly(),
  tenants: z.int(),
  oldest_at: v.instant().nullable(),
  seen: z.string().describe("the mark of what was counted: an execution with it touches nothing else"),
});

export const candidateDetail = candidate
  .extend({
    rules_evaluated: z.array(ruleResult).readonly(),
    evaluation: z
      .strictObject({
        ...evaluationShape,
        occurrences: z.int().describe("how many there were when it was made"),
        auto_execution: z.unknown(),
        selected_by: z.string().describe("who chose the action, where a person did"),
      })
      .partial()
      .nullable(),
    group,
    action: action.nullable(),
    approvals_missing: z.int(),
    lapsed: z.boolean(),
    lapsed_reason: z.string().nullable(),
    blast_radius: blastRadius,
    inputs: z.array(occurrence),
    provenance: z.array(provenance).optional(),
    hint: z.string().optional(),
  })
  .meta({ id: "CandidateDetail" });
