/** One line of the record: who did what to which group or candidate, and why. */
import { columns, int, intOrNull, moment, text, textOrNull } from "./columns.ts";
import type { Actor } from "./recovery.ts";

export type ActorType = "system" | "human" | "agent";

/** Of `recovery_provenance p`: the append-only record. Nothing ever changes or deletes a line (DR-40). */
export const PROVENANCE = columns({
  provenanceId: int("p.id"),
  at: moment("p.at"),
  groupId: intOrNull("p.group_id"),
  candidateId: intOrNull("p.candidate_id"),
  redriveId: textOrNull("p.redrive_id"),
  /** created, rule_evaluated, action_selected, approved, rejected, executing, executed, … */
  eventType: text("p.event"),
  actor: text("p.actor"),
  actorType: text<ActorType>("p.actor_type"),
  reason: textOrNull("p.reason"),
  ruleId: textOrNull("p.rule"),
  action: textOrNull("p.action"),
  confidenceBefore: intOrNull("p.confidence_before"),
  confidenceAfter: intOrNull("p.confidence_after"),
  durationMs: intOrNull("p.duration_ms"),
  /** JSON text. */
  details: textOrNull("p.details"),
});

export type Provenance = ReturnType<typeof PROVENANCE.of>;

type Who = "eventType" | "actor" | "actorType";
type Said = { readonly [K in Exclude<keyof Provenance, Who | "provenanceId" | "at">]?: Provenance[K] | undefined };

/** A line to be written; what is not said stays empty. */
export interface NewProvenance extends Pick<Provenance, Who>, Said {}

export const SYSTEM: Actor = { actor: "system", actorType: "system" };

/** `details` are written as JSON. */
export function line(
  eventType: string,
  { actor, actorType }: Actor,
  { details, ...said }: Omit<Said, "details"> & { readonly details?: Readonly<Record<string, unknown>> | undefined } = {},
): NewProvenance {
  return { ...said, eventType, actor, actorType, details: details && JSON.stringify(details) };
}
