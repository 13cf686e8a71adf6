/** One line of the record, with what is not said left empty: who did what to which group or candidate, and why. */
import type { NewProvenance } from "./records-types.ts";
import type { Actor } from "./recovery.ts";

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
