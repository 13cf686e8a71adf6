/** One line of the record: who did what to which group or candidate, and why. */
import type { Actor } from "./recovery.ts";

export type ActorType = "system" | "human" | "agent";

/** One line of the append-only record. Nothing ever changes or deletes it (DR-40). */
export interface Provenance {
  readonly provenanceId: number;
  readonly at: Date;
  readonly groupId: number | null;
  readonly candidateId: number | null;
  readonly redriveId: string | null;
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
