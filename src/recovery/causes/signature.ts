/**
 * A signature as data: what a failure looks like whose cause is known. It fits when one of its codes, its words or its statuses does. Of
 * all that fit the most certain one speaks, so what is specific comes before what is general, and a text before a status.
 */
import type { Cause } from "./cause.ts";

export interface Signature {
  readonly id: string;
  /** Raised by every edit; an edit names the version it was made from. */
  readonly version: number;
  readonly enabled: boolean;
  readonly cause: Cause;
  /** Which kind of this cause, where the remedy differs: an outage that is `passing`. */
  readonly detail?: string;
  /** How often the cause is the right one where this fits: 0 to 1. */
  readonly certainty: number;
  /** For people: what it means when this fits. */
  readonly says: string;
  /** Whole codes in any spelling: the code itself, or a member of a structured text such as `error.type`, or a SQLSTATE in it. */
  readonly codes?: readonly string[];
  /** RE2 on the words of the text: small letters and digits with one space between; a sentence or a member is a line. `… ` is up to four words. */
  readonly words?: readonly string[];
  /** HTTP statuses. */
  readonly status?: readonly number[];
}

export const SIGNATURE_LIMITS = { signaturesMax: 500, listMax: 64 } as const;

/** Below this a signature is vague: what rules make of it is worth less. */
export const SURE = 0.7;

type Signs = Pick<Signature, "codes" | "words" | "status">;

/** A shipped signature; `cause` may name a detail: `outage.passing`. */
export function sign(id: string, cause: Cause | `${Cause}.${string}`, certainty: number, says: string, signs: Signs): Signature {
  const [name, detail] = cause.split(".") as [Cause, string?];
  return { id, version: 1, enabled: true, cause: name, ...(detail === undefined ? {} : { detail }), certainty, says, ...signs };
}
