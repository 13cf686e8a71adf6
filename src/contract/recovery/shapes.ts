/** Groups, candidates, evaluations and actions as they are answered; and the record of who did what. */
import { z } from "zod";
import { DECISIONS, EVALUATION_STATUSES, EXECUTION_STATUSES } from "../../recovery/candidates/candidate-state.ts";
import { CAUSES } from "../../recovery/causes/cause.ts";
import * as v from "../values.ts";

export const texts = z.array(z.string()).readonly();

export const group = v.shape("Group", {
  group_id: z.int(),
  ...v.texts("failure_match_id", "topic", "sink", "error_code", "template"),
  ...v.textsOrNull("top_frame", "held_by", "group_rule"),
  occurrence_count: z.int(),
  open_messages: z.int().describe("messages of ours in it that are open dead letters now"),
  open_reports: z.int().describe("failures that other services reported and that have not ended"),
  ...v.textsOrNull("resolved_in", "resolved_by", "regressed_in"),
  ...v.instantsOrNull("resolved_at", "regressed_at"),
  regression: z.boolean().describe("it was resolved and failed again, in that version or a later one"),
  ...v.fields(v.instant(), "first_at", "last_at"),
  version: z.int(),
  merged_into: z.int().nullable(),
  fingerprint: z.string(),
});

export const occurrence = v.shape("Occurrence", {
  ...v.integers("occurrence_id", "group_id"),
  at: v.instant(),
  ...v.texts("source", "error_code", "error_message"),
  ...v.textsOrNull("stack_trace", "failure_match_id", "idempotency_key", "tenant_id", "skill_id", "message_id"),
  ...v.textsOrNull("version", "redrive_topic", "sent_id"),
  generation: z.int().nullable(),
  open: z.boolean().nullable(),
  open_report: z.boolean().nullable().describe("of a reported failure: whether it has not ended"),
  failure_payload: z.unknown().optional().describe("as it was reported, where it was asked for"),
});

export const groupRule = v.shape("GroupRule", {
  id: z.string(),
  version: z.int(),
  kind: z.string().nullable(),
  ...v.texts("topic", "error_code", "reason", "actor"),
  ...v.fields(texts, "templates", "words"),
  at: v.instant(),
  used: z.boolean().describe("false: it cannot be read, or there are too many"),
});

export const provenance = v.shape("Provenance", {
  provenance_id: z.int(),
  at: v.instant(),
  ...v.texts("event_type", "actor", "actor_type"),
  ...v.textsOrNull("reason", "redrive_id", "rule_id", "action"),
  ...v.integersOrNull("group_id", "candidate_id"),
  ...v.fields(z.number().nullable(), "confidence_before", "confidence_after", "duration_ms"),
  details: z.unknown(),
});

const rate = { success_rate: z.number().nullable() };
const outcome = z.strictObject({ action: z.string(), ...v.fields(z.number(), "healed", "failed"), ...rate });
export const stats = v.shape("RecoveryStats", {
  ...v.integers("groups", "open_groups", "occurrences", "uningested"),
  ...v.fields(z.record(z.string(), z.number()), "decisions", "evaluations", "executions"),
  outcomes: z.array(outcome),
});

const approval = v.shape("Approval", {
  actor: z.string(),
  at: v.instant(),
  note: z.string().nullable(),
  occurrence_count: z.int().nullable().describe("how many failures the group had then"),
});

export const candidate = v.shape("Candidate", {
  ...v.integers("candidate_id", "group_id", "round", "version", "group_version", "occurrence_count"),
  ...v.texts("failure_match_id", "topic", "error_code"),
  decision: z.enum(DECISIONS),
  approvals: z.array(approval),
  evaluation_status: z.enum(EVALUATION_STATUSES),
  execution_status: z.enum(EXECUTION_STATUSES),
  execution_result: z.unknown(),
  confidence: z.number().nullable(),
  ...v.textsOrNull("selected_action", "executed_by", "execution_id", "redrive_id", "owner", "note"),
  ...v.instantsOrNull("evaluated_at", "executed_at", "lease_until"),
  ...v.fields(v.instant(), "created_at", "updated_at"),
});

const from = z.string().describe("own: of this group; else of what is like it");
const source = z.strictObject({ from, ...v.fields(z.number(), "weight", "mean") });
export const supposed = z.strictObject({
  action: z.string(),
  confidence: z.number(),
  ended: source.nullable().describe("what became of it before; null: nothing is known"),
});

const suggestion = v.shape("Suggestion", {
  action: z.string(),
  ...v.fields(z.number(), "confidence", "prior", "weight"),
  rules: texts,
  contributions: z.array(source).readonly(),
});

const fact = z.strictObject({ ...v.texts("path", "field", "wanted", "found"), matched: z.boolean() });
const contribution = z.strictObject({ kind: z.enum(["prior", "supports"]), action: z.string(), score: z.number() });
const ruleResult = v.shape("RuleResult", {
  rule_id: z.string(),
  version: z.int(),
  priority: z.number(),
  matched: z.boolean(),
  skipped: z.string().nullable(),
  facts: z.array(fact).readonly(),
  contribution: z.union([contribution, z.strictObject({ kind: z.literal("none") })]),
});

export const evaluation = v.shape("Evaluation", {
  ...v.textsOrNull("recommended_action", "cause_detail", "cause_signature"),
  ...v.fields(z.number(), "confidence", "cause_certainty"),
  recommended: suggestion.nullable(),
  alternatives: z.array(suggestion).readonly(),
  error_code: z.string().describe("what was read as the error code"),
  ...v.fields(texts, "error_classes", "notes"),
  cause: z.enum(CAUSES).describe("what is wrong and where"),
  cause_evidence: z.string().describe("why, in a sentence"),
  rules_evaluated: z.array(ruleResult).readonly(),
});

export const action = v.shape("Action", {
  ...v.texts("action_code", "name", "action_type"),
  ...v.fields(z.number(), "priority", "failures"),
  risk: z.enum(["safe", "risky", "forbidden"]),
  approval: z.enum(["none", "one", "two"]),
  ...v.fields(z.boolean(), "requires_approval", "is_automated", "is_active", "shipped"),
  ...v.fields(texts, "applies_to_error_codes", "applies_to_topics"),
  template: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  inverse: z.string().nullable(),
  ...v.integers("version", "total_applications"),
  successes: z.number().describe("messages it touched that healed; older ones weigh less"),
  ...rate,
});

const blastRadius = v.shape("BlastRadius", {
  ...v.integers("messages", "tenants"),
  over_generation: z.int().describe("left out, because they were replayed often enough"),
  left_out: z.record(z.string(), z.int()).describe("how many would be left alone, by reason"),
  topics: z.array(z.strictObject({ topic: z.string(), messages: z.int() })).readonly(),
  oldest_at: v.instant().nullable(),
  seen: z.string().describe("the mark of what was counted: an execution with it touches nothing else"),
});

export const candidateDetail = candidate
  .extend({
    rules_evaluated: z.array(ruleResult).readonly(),
    evaluation: evaluation
      .omit({ rules_evaluated: true })
      .extend({
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
