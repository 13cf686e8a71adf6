/**
 * Groups, occurrences, group rules, provenance and statistics as they are answered.
 */
import { z } from "zod";
import * as v from "../values.ts";

export const group = v.shape("Group", {
  group_id: z.int(),
  ...v.texts("failure_match_id", "topic", "sink", "error_code", "template"),
  ...v.textsOrNull("top_frame", "held_by", "group_rule"),
  occurrence_count: z.int(),
  open_messages: z.int().describe("messages of ours in it that are open dead letters now"),
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
  generation: z.int().nullable(),
  open: z.boolean().nullable(),
  failure_payload: z.unknown().optional().describe("as it was reported, where it was asked for"),
});

export const groupRule = v.shape("GroupRule", {
  id: z.string(),
  version: z.int(),
  kind: z.string().nullable(),
  ...v.texts("topic", "error_code", "reason", "actor"),
  ...v.fields(z.array(z.string()).readonly(), "templates", "words"),
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

const outcome = z.strictObject({
  action: z.string(),
  ...v.fields(z.number(), "healed", "failed"),
  success_rate: z.number().nullable(),
});

export const stats = v.shape("RecoveryStats", {
  ...v.integers("groups", "open_groups", "occurrences", "uningested"),
  ...v.fields(z.record(z.string(), z.number()), "decisions", "evaluations", "executions"),
  outcomes: z.array(outcome),
});
