/**
 * How what the recovery engine knows becomes the shapes of the contract. A candidate is shown with what one needs to decide about it: its group,
 * the reasons, who has approved, and what an execution would touch.
 */
import type { z } from "zod";
import { redrive, redriveItem } from "../../contract/recovery/redrives.ts";
import * as shapes from "../../contract/recovery/shapes.ts";
import { group, occurrence, provenance, stats } from "../../contract/recovery/shapes.ts";
import { isObject } from "../../message/json.ts";
import type { ActionInfo } from "../../recovery/actions/action.ts";
import { approvalsNeeded } from "../../recovery/actions/applies.ts";
import type { CandidateDetail, EvaluateAnswer } from "../../recovery/recovery.ts";
import { evaluationToJson } from "../../recovery/rules/evaluation-json.ts";
import type { Candidate, Group, Occurrence, Provenance } from "../../store/recovery.ts";
import type { RecoveryStats } from "../../store/recovery-numbers.ts";
import type { Redrive, RedriveItem } from "../../store/redrive.ts";
import { inWireNames, wireOf } from "./wire.ts";

/** JSON text that we wrote ourselves; what is none is shown as the text it is. */
export function parsedText(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export const groupJson = (found: Group) => wireOf(group, found);

export function occurrenceJson(found: Occurrence) {
  const { source, requestKey, message } = found;
  return wireOf(occurrence, found, {
    idempotency_key: source === "message" ? null : (requestKey?.replace(/^report:/, "") ?? null),
    message_id: message?.id ?? null,
    generation: message?.generation ?? null,
    failure_payload: undefined,
  });
}

export function provenanceJson(found: Provenance) {
  const { redriveId = null, durationMs, details } = found;
  return wireOf(provenance, found, {
    redrive_id: redriveId,
    duration_ms: durationMs === null ? null : rounded(durationMs),
    details: parsedText(details),
  });
}

export function statsJson(found: RecoveryStats) {
  const outcomes = found.outcomes.map(({ action, successes, failures }) => {
    return { action, healed: rounded(successes), failed: rounded(failures), success_rate: rate(successes, failures) };
  });
  return wireOf(stats, found, { outcomes });
}

export function candidateJson(found: Candidate, { failureMatchId, occurrenceCount, topic, errorCode }: Group) {
  return wireOf(shapes.candidate, found, {
    ...{ failure_match_id: failureMatchId, occurrence_count: occurrenceCount, topic, error_code: errorCode },
    execution_result: parsedText(found.executionResult),
  });
}

export function candidateDetailJson(detail: CandidateDetail): z.output<typeof shapes.candidateDetail> {
  const { candidate, group, action, approvalsMissing, lapsed, lapsedReason, blastRadius, inputs, provenance } = detail;
  const kept = parsedText(candidate.evaluation);
  const { rules_evaluated = [], ...evaluation } = (isObject(kept) ? kept : {}) as { rules_evaluated?: [] };
  return {
    ...candidateJson(candidate, group),
    rules_evaluated,
    evaluation: isObject(kept) ? evaluation : null,
    group: groupJson(group),
    action: action === null ? null : actionJson(action),
    approvals_missing: approvalsMissing,
    ...{ lapsed, lapsed_reason: lapsedReason },
    blast_radius: wireOf(shapes.blastRadius, blastRadius),
    inputs: inputs.map(occurrenceJson),
    ...(provenance === null ? {} : { provenance: provenance.map(provenanceJson) }),
  };
}

export function actionJson(found: ActionInfo) {
  const { successes, failures } = found;
  return wireOf(shapes.action, found, {
    requires_approval: approvalsNeeded(found) > 0,
    ...{ successes: rounded(successes), failures: rounded(failures), success_rate: rate(successes, failures) },
    total_applications: Math.round(successes + failures),
  });
}

export function evaluateJson({ evaluation, fingerprint, failureMatchId, template, groupId, durationMs }: EvaluateAnswer) {
  const found = { fingerprint, failure_match_id: failureMatchId, template, group_id: groupId };
  return { ...evaluationToJson(evaluation), ...found, duration_ms: rounded(durationMs) };
}

/** Shown also where they were not given. */
const SELECT = { group_id: null, topic: null, tenant_id: null, error_code: null, ids_given: null };

export function redriveJson(found: Redrive) {
  const { select, counts, plan } = found;
  const known = counts.healed + counts.failed + counts.skipped;
  return wireOf(redrive, found, {
    select: { ...SELECT, ...inWireNames(select) },
    plan: inWireNames(parsedText(plan)),
    progress: counts.selected === 0 ? 1 : known / counts.selected,
  });
}

export const itemJson = (item: RedriveItem) => wireOf(redriveItem, item);

/** Null while nothing is known. */
export function rate(successes: number, failures: number): number | null {
  return successes + failures > 0 ? rounded(successes / (successes + failures)) : null;
}

/** To three places: what was learned decays, and its further digits say nothing. */
export function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
