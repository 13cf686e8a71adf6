/** One line of the record, with what is not said left empty: who did what to which group or candidate, and why. */
import type { Actor } from "./recovery.ts";

export type ActorType = "system" | "human" | "agent";

/** One line of the append-only record. Nothing ever changes or deletes it (DR-40). */
export interface NewProvenance {
  readonly groupId: number | null;
  readonly candidateId: number | null;
  readonly redriveId?: string | null | undefined;
  /** created, rule_evaluated, action_selected, approved, rejected, executing, executed, … */
  readonly eventType: string;
  readonly actor: string;
  readonly actorType: ActorType;
  readonly reason: string | null;
  readonly ruleId: string | null;
  readonly action: string | null;
  readonly confidenceBefore: number | null;
  readonly confidenceAfter: number | null;
  readonly durationMs: number | null;
  /** JSON text. */
  readonly details: string | null;
}

export interface Provenance extends NewProvenance {
  readonly provenanceId: number;
  readonly at: Date;
}

export const SYSTEM: Actor = { actor: "system", actorType: "system" };

type Said = Partial<Omit<NewProvenance, "eventType" | "actor" | "actorType" | "details">> & {
  /** Written as JSON. */
  readonly details?: Readonly<Record<string, unknown>> | undefined;
};

export function line(eventType: string, by: Actor, said: Said = {}): NewProvenance {
  return {
    groupId: said.groupId ?? null,
    candidateId: said.candidateId ?? null,
    redriveId: said.redriveId ?? null,
    eventType,
    actor: by.actor,
    actorType: by.actorType,
    reason: said.reason ?? null,
    ruleId: said.ruleId ?? null,
    action: said.action ?? null,
    confidenceBefore: said.confidenceBefore ?? null,
    confidenceAfter: said.confidenceAfter ?? null,
    durationMs: said.durationMs ?? null,
    details: said.details === undefined ? null : JSON.stringify(said.details),
  };
}
