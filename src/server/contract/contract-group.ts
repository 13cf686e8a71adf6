/**
 * Groups, group rules, occurrences, provenance and statistics as JSON. Optional fields may be added later; none is changed or removed.
 */
import type { GroupRuleInfo, IngestAnswer } from "../../recovery/recovery.ts";
import type { Group, Occurrence, Provenance } from "../../store/recovery.ts";
import type { RecoveryStats } from "../../store/recovery-numbers.ts";

export interface IngestJson {
  readonly candidate_id: number;
  readonly group_id: number;
  readonly failure_match_id: string;
  readonly status: IngestAnswer["status"];
  readonly is_duplicate: boolean;
  readonly occurrence_count: number;
  readonly evaluation_queued: boolean;
}

export interface GroupJson {
  readonly group_id: number;
  readonly failure_match_id: string;
  readonly topic: string;
  readonly sink: string;
  readonly error_code: string;
  readonly template: string;
  readonly top_frame: string | null;
  readonly occurrence_count: number;
  /** Messages of ours in it that are open dead letters now. */
  readonly open_messages: number;
  readonly first_at: string;
  readonly last_at: string;
  readonly version: number;
  readonly merged_into: number | null;
  readonly held_by: string | null;
  readonly fingerprint: string;
  readonly group_rule: string | null;
}

export interface GroupRuleJson {
  readonly id: string;
  readonly version: number;
  readonly kind: GroupRuleInfo["kind"];
  readonly topic: string;
  readonly error_code: string;
  readonly templates: readonly string[];
  readonly words: readonly string[];
  readonly reason: string;
  readonly actor: string;
  readonly at: string;
  /** False: it cannot be read, or there are too many. */
  readonly used: boolean;
}

export interface OccurrenceJson {
  readonly occurrence_id: number;
  readonly group_id: number;
  readonly at: string;
  readonly source: Occurrence["source"];
  readonly error_code: string;
  readonly error_message: string;
  readonly stack_trace: string | null;
  readonly failure_match_id: string | null;
  readonly idempotency_key: string | null;
  readonly tenant_id: string | null;
  readonly skill_id: string | null;
  readonly message_id: string | null;
  readonly generation: number | null;
  readonly open: boolean | null;
}

export interface RecoveryProvenanceJson {
  readonly provenance_id: number;
  readonly at: string;
  readonly event_type: string;
  readonly actor: string;
  readonly actor_type: Provenance["actorType"];
  readonly reason: string | null;
  readonly group_id: number | null;
  readonly candidate_id: number | null;
  readonly redrive_id: string | null;
  readonly rule_id: string | null;
  readonly action: string | null;
  readonly confidence_before: number | null;
  readonly confidence_after: number | null;
  readonly duration_ms: number | null;
  readonly details: unknown;
}

export interface StatsJson {
  readonly groups: number;
  readonly open_groups: number;
  readonly occurrences: number;
  readonly uningested: number;
  readonly decisions: RecoveryStats["decisions"];
  readonly evaluations: RecoveryStats["evaluations"];
  readonly executions: RecoveryStats["executions"];
  readonly outcomes: readonly {
    readonly action: string;
    readonly healed: number;
    readonly failed: number;
    readonly success_rate: number | null;
  }[];
}

export interface ListJson<T> {
  readonly data: readonly T[];
  readonly next_cursor: string | null;
}

export function instant(date: Date | null): string | null {
  return date === null ? null : date.toISOString();
}

/** JSON text that we wrote ourselves; what is none is shown as the text it is. */
export function parsedText(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function ingestJson(answer: IngestAnswer): IngestJson {
  return {
    candidate_id: answer.candidateId,
    group_id: answer.groupId,
    failure_match_id: answer.failureMatchId,
    status: answer.status,
    is_duplicate: answer.status === "duplicate",
    occurrence_count: answer.occurrenceCount,
    evaluation_queued: answer.evaluationQueued,
  };
}

export function groupJson(group: Group): GroupJson {
  return {
    group_id: group.groupId,
    failure_match_id: group.matchId,
    topic: group.topic,
    sink: group.sink,
    error_code: group.code,
    template: group.template,
    top_frame: group.frame,
    occurrence_count: group.occurrences,
    open_messages: group.openMessages,
    first_at: group.firstAt.toISOString(),
    last_at: group.lastAt.toISOString(),
    version: group.version,
    merged_into: group.mergedInto,
    held_by: group.heldBy,
    fingerprint: group.fingerprint,
    group_rule: group.rule,
  };
}

export function groupRuleJson({ code, why, at, ...rule }: GroupRuleInfo): GroupRuleJson {
  const { id, version, kind, topic, templates, words, actor, used } = rule;
  return { id, version, kind, topic, error_code: code, templates, words, reason: why, actor, at: at.toISOString(), used };
}

export function occurrenceJson(occurrence: Occurrence): OccurrenceJson {
  return {
    occurrence_id: occurrence.occurrenceId,
    group_id: occurrence.groupId,
    at: occurrence.at.toISOString(),
    source: occurrence.source,
    error_code: occurrence.code,
    error_message: occurrence.text,
    stack_trace: occurrence.stack,
    failure_match_id: occurrence.matchId,
    idempotency_key: occurrence.source === "message" ? null : (occurrence.requestKey?.replace(/^report:/, "") ?? null),
    tenant_id: occurrence.tenantId,
    skill_id: occurrence.skill,
    message_id: occurrence.message?.id ?? null,
    generation: occurrence.message?.generation ?? null,
    open: occurrence.open,
  };
}

/** With the failure payload as the exact text that came in: parsing it would change big numbers and escapes. */
export function occurrenceText(occurrence: Occurrence, payload: boolean): string {
  const text = JSON.stringify(occurrenceJson(occurrence));
  return payload ? `${text.slice(0, -1)},"failure_payload":${occurrence.payload ?? "null"}}` : text;
}

export function provenanceJson(record: Provenance): RecoveryProvenanceJson {
  return {
    provenance_id: record.provenanceId,
    at: record.at.toISOString(),
    event_type: record.event,
    actor: record.actor,
    actor_type: record.actorType,
    reason: record.reason,
    group_id: record.groupId,
    candidate_id: record.candidateId,
    redrive_id: record.redriveId ?? null,
    rule_id: record.rule,
    action: record.action,
    confidence_before: record.confidenceBefore,
    confidence_after: record.confidenceAfter,
    duration_ms: record.durationMs === null ? null : rounded(record.durationMs),
    details: parsedText(record.details),
  };
}

export function statsJson(stats: RecoveryStats): StatsJson {
  return {
    groups: stats.groups,
    open_groups: stats.openGroups,
    occurrences: stats.occurrences,
    uningested: stats.uningested,
    decisions: stats.decisions,
    evaluations: stats.evaluations,
    executions: stats.executions,
    outcomes: stats.outcomes.map(({ action, successes, failures }) => ({
      action,
      healed: rounded(successes),
      failed: rounded(failures),
      success_rate: rate(successes, failures),
    })),
  };
}

/** Null while nothing is known. */
export function rate(successes: number, failures: number): number | null {
  return successes + failures > 0 ? rounded(successes / (successes + failures)) : null;
}

/** To three places: what was learned decays, and its further digits say nothing. */
export function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
