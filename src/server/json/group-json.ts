/**
 * How groups, group rules, occurrences, provenance and statistics become the shapes of the contract.
 */
import type { z } from "zod";
import { group, type groupRule, occurrence, provenance, stats } from "../../contract/recovery/group-shapes.ts";
import type { Group, Occurrence, Provenance } from "../../store/recovery.ts";
import type { RecoveryStats } from "../../store/recovery-numbers.ts";
import { wireOf } from "./wire.ts";

export type GroupJson = z.output<typeof group>;
export type GroupRuleJson = z.output<typeof groupRule>;
export type OccurrenceJson = z.output<typeof occurrence>;
export interface ListJson<T> {
  readonly data: readonly T[];
  readonly next_cursor: string | null;
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

export const groupJson = (found: Group): GroupJson => wireOf(group, found);

export function occurrenceJson(found: Occurrence): OccurrenceJson {
  const { source, requestKey, message } = found;
  return wireOf(occurrence, found, {
    idempotency_key: source === "message" ? null : (requestKey?.replace(/^report:/, "") ?? null),
    message_id: message?.id ?? null,
    generation: message?.generation ?? null,
    failure_payload: undefined,
  });
}

export function provenanceJson(found: Provenance): z.output<typeof provenance> {
  const { redriveId = null, durationMs, details } = found;
  return wireOf(provenance, found, {
    redrive_id: redriveId,
    duration_ms: durationMs === null ? null : rounded(durationMs),
    details: parsedText(details),
  });
}

export function statsJson(found: RecoveryStats): z.output<typeof stats> {
  const outcomes = found.outcomes.map(({ action, successes, failures }) => {
    return { action, healed: rounded(successes), failed: rounded(failures), success_rate: rate(successes, failures) };
  });
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
