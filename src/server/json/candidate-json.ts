/**
 * How candidates, actions and evaluations become the shapes of the contract. A candidate is shown with what one needs to decide about it: its group, the reasons, who has
 * approved, and what an execution would touch.
 */
import type { z } from "zod";
import {
  action,
  blastRadius as blastRadiusShape,
  candidate,
  type candidateDetail,
} from "../../contract/recovery/candidate-shapes.ts";
import type { AnswerOf } from "../../contract/table.ts";
import type { ActionInfo } from "../../recovery/actions/action.ts";
import { approvalsNeeded } from "../../recovery/actions/applies.ts";
import type { CandidateDetail, EvaluateAnswer } from "../../recovery/recovery.ts";
import { type EvaluationJson, evaluationToJson } from "../../recovery/rules/evaluation-json.ts";
import type { Candidate, Group } from "../../store/recovery.ts";
import { groupJson, occurrenceJson, parsedText, provenanceJson, rate, rounded } from "./group-json.ts";
import { wireOf } from "./wire.ts";

export type CandidateJson = z.output<typeof candidate>;
export type BlastRadiusJson = z.output<typeof blastRadiusShape>;
export type ActionJson = z.output<typeof action>;
export type CandidateDetailJson = z.output<typeof candidateDetail>;
export type EvaluateJson = AnswerOf<"evaluateFailure">;

export function candidateJson(found: Candidate, group: Group): CandidateJson {
  const { failureMatchId, occurrenceCount, topic, errorCode } = group;
  return wireOf(candidate, found, {
    failure_match_id: failureMatchId,
    occurrence_count: occurrenceCount,
    topic,
    error_code: errorCode,
    execution_result: parsedText(found.executionResult),
  });
}

export function candidateDetailJson(detail: CandidateDetail): CandidateDetailJson {
  const { candidate, group, action, approvalsMissing, lapsed, lapsedReason, blastRadius, inputs, provenance } = detail;
  const kept = parsedText(candidate.evaluation);
  const evaluation = kept !== null && typeof kept === "object" ? (kept as Partial<EvaluationJson>) : null;
  const { rules_evaluated = [], ...rest } = evaluation ?? {};
  return {
    ...candidateJson(candidate, group),
    rules_evaluated,
    evaluation: evaluation === null ? null : rest,
    group: groupJson(group),
    action: action === null ? null : actionJson(action),
    approvals_missing: approvalsMissing,
    lapsed,
    lapsed_reason: lapsedReason,
    blast_radius: wireOf(blastRadiusShape, blastRadius),
    inputs: inputs.map(occurrenceJson),
    ...(provenance === null ? {} : { provenance: provenance.map(provenanceJson) }),
  };
}

export function actionJson(found: ActionInfo): ActionJson {
  const { successes, failures } = found;
  return wireOf(action, found, {
    requires_approval: approvalsNeeded(found) > 0,
    successes: rounded(successes),
    failures: rounded(failures),
    success_rate: rate(successes, failures),
    total_applications: Math.round(successes + failures),
  });
}

export function evaluateJson(answer: EvaluateAnswer): EvaluateJson {
  return {
    ...evaluationToJson(answer.evaluation),
    fingerprint: answer.fingerprint,
    failure_match_id: answer.failureMatchId,
    template: answer.template,
    group_id: answer.groupId,
    duration_ms: rounded(answer.durationMs),
  };
}
