/**
 * Groups, occurrences, group rules, provenance and statistics as they are answered.
 */
import { z } from "zod";
import * as v from "../values.ts";

export const group = v.shape("Group", {
  group_id: z.int(),
  failure_match_id: z.string(),
  topic: z.string(),
  sink: z.string(),
  error_code: z.string(),
  template: z.string(),
  top_frame: z.string().nullable(),
  occurrence_count: z.int(),
  open_messages: z.int().describe("messages of ours in it that are open dead letters now"),
  first_at: v.instant(),
  last_at: v.instant(),
  version: z.int(),
  merged_into: z.int().nullable(),
  held_by: z.string().nullable(),
  fingerprint: z.string(),
  group_rule: z.string().nullable(),
});

export const occurrence = v.shape("Occurrence", {
  occurrence_id: z.int(),
  group_id: z.int(),
  at: v.instant(),
  source: z.string(),
  error_code: z.string(),
  error_message: z.string(),
  stack_trace: z.string().nullable(),
  failure_match_id: z.string().nullable(),
  idempotency_key: z.string().nullable(),
  tenant_id: z.string().nullable(),
  skill_id: z.string().nullable(),
  message_id: z.string().nullable(),
  generation: z.int().nullable(),
  open: z.boolean().nullable(),
  failure_payload: z.unknown().optional().describe("as it was reported, where it was asked for"),
});

export const groupRule = v.shape("GroupRule", {
  id: z.string(),
  version: z.int(),
  kind: z.string().nullable(),
  topic: z.string(),
  error_code: z.string(),
  templates: z.array(z.string()).readonly(),
  words: z.array(z.string()).readonly(),
  reason: z.string(),
  actor: z.string(),
  at: v.instant(),
  used: z.boolean().describe("false: it cannot be read, or there are too many"),
});

export const provenance = v.shape("Provenance", {
  provenance_id: z.int(),
  at: v.instant(),
  event_type: z.string(),
  actor: z.string(),
  actor_type: z.string(),
  reason: z.string().nullable(),
  group_id: z.int().nullable(),
  candidate_id: z.int().nullable(),
  redrive_id: z.string().nullable(),
  rule_id: z.string().nullable(),
  action: z.string().nullable(),
  confidence_before: z.number().nullable(),
  confidence_after: z.number().nullable(),
  duration_ms: z.number().nullable(),
  details: z.unknown(),
});

const counts = z.record(z.string(), z.number());

export const stats = v.shape("RecoveryStats", {
  groups: z.int(),
  open_groups: z.int(),
  occurrences: z.int(),
  uningested: z.int(),
  decisions: counts,
  evaluations: counts,
  executions: counts,
  outcomes: z.array(
    z.strictObject({ action: z.string(), healed: z.number(), failed: z.number(), success_rate: z.number().nullable() }),
  ),
});
