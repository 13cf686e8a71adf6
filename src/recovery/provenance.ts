/** One line of the record: who did what to which group or candidate, and why. */
import type { Actor } from "./recovery.ts";
import type { PROVENANCE } from "./rows.ts";

export type ActorType = "system" | "human" | "agent";

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
