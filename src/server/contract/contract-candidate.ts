/**
 * Candidates, actions and rules as JSON. A candidate is shown with what one needs to decide about it: its group, the reasons, who has
 * approved, and what an execution would touch.
 */
import type { ActionInfo } from "../../recovery/actions/action.ts";
import { approvalsNeeded } from "../../recovery/actions/applies.ts";
import type { CandidateDetail, EvaluateAnswer } from "../../recovery/recovery.ts";
import type { EvaluationJson, RuleResultJson } from "../../recovery/rules/evaluation-json.ts";
import { evaluationToJson } from "../../recovery/rules/evaluation-json.ts";
import type { Candidate, Group } from "../../store/recovery.ts";
import type { RedrivePreview } from "../../store/redrive.ts";
import {
  type GroupJson,
  groupJson,
  instant,
  type OccurrenceJson,
  occurrenceJson,
  parsedText,
  provenanceJson,
  type RecoveryProvenanceJson,
  rate,
  rounded,
} from "./contract-group.ts";

export interface CandidateJson {
  readonly candidate_id: number;
  readonly failure_match_id: string;
  readonly group_id: number;
  readonly occurrence_count: number;
  readonly topic: string;
  readonly error_code: string;
  readonly round: number;
  readonly version: number;
  readonly decision: Candidate["decision"];
  readonly approvals: readonly {
    readonly actor: string;
    readonly at: string;
    readonly note: string | null;
    /** How many failures the group had then. */
    readonly occurrence_count: number | null;
  }[];
  readonly evaluation_status: Candidate["evaluationStatus"];
  readonly evaluated_at: string | null;
  readonly selected_action: string | null;
  readonly confidence: number | null;
  readonly execution_status: Candidate["executionStatus"];
  readonly executed_at: string | null;
  readonly executed_by: string | null;
  readonly execution_result: unknown;
  readonly redrive_id: string | null;
  readonly owner: string | null;
  readonly note: string | null;
  readonly group_version: number;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface BlastRadiusJson {
  readonly messages: number;
  /** Left out, because they were replayed often enough. */
  readonly over_generation: number;
  readonly topics: readonly { readonly topic: string; readonly messages: number }[];
  readonly tenants: number;
  readonly oldest_at: string | null;
  /** The mark of what was counted: an execution with it (`redrive.seen`) touches nothing else. */
  readonly seen: string;
}

export interface ActionJson {
  readonly action_code: string;
  readonly name: string;
  readonly action_type: ActionInfo["type"];
  readonly priority: number;
  readonly risk: ActionInfo["risk"];
  readonly approval: ActionInfo["approval"];
  readonly requires_approval: boolean;
  readonly is_automated: boolean;
  readonly is_active: boolean;
  readonly applies_to_error_codes: readonly string[];
  readonly applies_to_topics: readonly string[];
  readonly template: ActionInfo["template"];
  readonly inverse: ActionInfo["inverse"];
  readonly version: number;
  readonly shipped: boolean;
  /** Messages it touched, by what became of them; older ones weigh less. */
  readonly successes: number;
  readonly failures: number;
  readonly success_rate: number | null;
  readonly total_applications: number;
}

export interface CandidateDetailJson extends CandidateJson {
  readonly rules_evaluated: readonly RuleResultJson[];
  readonly evaluation: Partial<EvaluationJson> | null;
  readonly group: GroupJson;
  readonly action: ActionJson | null;
  readonly approvals_missing: number;
  readonly lapsed: boolean;
  readonly lapsed_reason: string | null;
  readonly blast_radius: BlastRadiusJson;
  readonly inputs: readonly OccurrenceJson[];
  readonly provenance?: readonly RecoveryProvenanceJson[];
}

export interface EvaluateJson extends EvaluationJson {
  readonly fingerprint: string;
  readonly failure_match_id: string;
  readonly template: string;
  readonly group_id: number | null;
  readonly duration_ms: number;
}

export function candidateJson(candidate: Candidate, group: Group): CandidateJson {
  return {
    candidate_id: candidate.candidateId,
    failure_match_id: group.matchId,
    group_id: candidate.groupId,
    occurrence_count: group.occurrences,
    topic: group.topic,
    error_code: group.code,
    round: candidate.round,
    version: candidate.version,
    decision: candidate.decision,
    approvals: candidate.approvals.map(({ actor, at, note, occurrences }) => ({
      ...{ actor, at: at.toISOString(), note },
      occurrence_count: occurrences,
    })),
    evaluation_status: candidate.evaluationStatus,
    evaluated_at: instant(candidate.evaluatedAt),
    selected_action: candidate.action,
    confidence: candidate.confidence,
    execution_status: candidate.executionStatus,
    executed_at: instant(candidate.executedAt),
    executed_by: candidate.executedBy,
    execution_result: parsedText(candidate.executionResult),
    redrive_id: candidate.redriveId,
    owner: candidate.owner,
    note: candidate.note,
    group_version: candidate.groupVersion,
    created_at: candidate.createdAt.toISOString(),
    updated_at: candidate.updatedAt.toISOString(),
  };
}

export function candidateDetailJson(detail: CandidateDetail): CandidateDetailJson {
  const { candidate, group, action, approvalsMissing, lapsed, lapsedWhy, blastRadius, inputs, provenance } = detail;
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
    lapsed_reason: lapsedWhy,
    blast_radius: blastRadiusJson(blastRadius),
    inputs: inputs.map(occurrenceJson),
    ...(provenance === null ? {} : { provenance: provenance.map(provenanceJson) }),
  };
}

export function blastRadiusJson({ messages, overGeneration, topics, tenants, oldestAt, seen }: RedrivePreview): BlastRadiusJson {
  return { messages, over_generation: overGeneration, topics, tenants, oldest_at: instant(oldestAt), seen };
}

export function actionJson(action: ActionInfo): ActionJson {
  return {
    action_code: action.code,
    name: action.name,
    action_type: action.type,
    priority: action.priority,
    risk: action.risk,
    approval: action.approval,
    requires_approval: approvalsNeeded(action) > 0,
    is_automated: action.automated,
    is_active: action.enabled,
    applies_to_error_codes: action.appliesToCodes,
    applies_to_topics: action.appliesToTopics,
    template: action.template,
    inverse: action.inverse,
    version: action.version,
    shipped: action.shipped,
    successes: rounded(action.successes),
    failures: rounded(action.failures),
    success_rate: rate(action.successes, action.failures),
    total_applications: Math.round(action.successes + action.failures),
  };
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
