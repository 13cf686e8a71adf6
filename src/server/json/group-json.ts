/**
 * How groups, group rules, occurrences, provenance and statistics become the shapes of the contract.
 */
import type { z } from "zod";
import { counted } from "../../contract/recovery/failures.ts";
import { group, groupRule, occurrence, provenance, stats } from "../../contract/recovery/group-shapes.ts";
import type { AnswerOf } from "../../contract/table.ts";
import type { GroupRuleInfo, IngestAnswer } from "../../recovery/recovery.ts";
import type { Group, Occurrence, Provenance } from "../../store/recovery.ts";
import type { RecoveryStats } from "../../store/recovery-numbers.ts";
import { wireOf } from "./wire.ts";

export type GroupJson = z.output<typeof group>;
export type GroupRuleJson = z.output<typeof groupRule>;
export type OccurrenceJson = z.output<typeof occurrence>;
export type RecoveryProvenanceJson = z.output<typeof provenance>;
export type StatsJson = z.output<typeof stats>;
export interface ListJson<T> {
  readonly data: readonly T[];
  readonly next_cursor: string | null;
}
export type IngestJson = AnswerOf<"ingestFailure">;

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
  return wireOf(counted, answer, { is_duplicate: answer.status === "duplicate" });
}

export const groupJson = (found: Group): GroupJson => wireOf(group, found, {});

export const groupRuleJson = (found: GroupRuleInfo): GroupRuleJson => wireOf(groupRule, found, {});

export function occurrenceJson(found: Occurrence): OccurrenceJson {
  const { source, requestKey, message } = found;
  return wireOf(occurrence, found, {
    idempotency_key: source === "message" ? null : (requestKey?.replace(/^report:/, "") ?? null),
    message_id: message?.id ?? null,
    generation: message?.generation ?? null,
    failure_payload: undefined,
  });
}

/** With the failure payload as the exact text that came in: parsing it would change big numbers and escapes. */
export function occurrenceText(occurrence: Occurrence, payload: boolean): string {
  const text = JSON.stringify(occurrenceJson(occurrence));
  return payload ? `${text.slice(0, -1)},"failure_payload":${occurrence.failurePayload ?? "null"}}` : text;
}

export function provenanceJson(found: Provenance): RecoveryProvenanceJson {
  const { redriveId = null, durationMs, details } = found;
  return wireOf(provenance, found, {
    redrive_id: redriveId,
    duration_ms: durationMs === null ? null : rounded(durationMs),
    details: parsedText(details),
  });
}

export function statsJson(found: RecoveryStats): StatsJson {
  const outcomes = found.outcomes.map(({ action, successes, failures }) => ({
    action,
    healed: rounded(successes),
    failed: rounded(failures),
    success_rate: rate(successes, failures),
  }));
  return wireOf(stats, found, { outcomes });
}

/** Null while nothing is known. */
export function rate(successes: number, failures: number): number | null {
  return successes + failures > 0 ? rounded(successes / (successes + failures)) : null;
}

/** To three places: what was learned decays, and its further digits say nothing. */
export function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
