/**
 * What a store knows of its own conservation: that everything it accepted is in exactly one state, or was settled and is accounted for.
 * An engine that can say so implements this in its own folder; who compares it with the world outside is src/verify.
 */
import type { At, Store } from "./store.ts";

/** Unknown is not whole: it could not be proven, or not yet. */
export type ConservationState = "whole" | "broken" | "unknown";

/** One thing that does not add up. */
export interface Divergence {
  /** A word of `DIVERGENCES` in src/verify/meanings.ts. */
  readonly kind: string;
  readonly topic: string | null;
  readonly tenantId: string | null;
  /** The hour of the bucket, by the store's clock; null: it is about more than one, or none. */
  readonly hour: Date | null;
  /** How many messages; `ids` are at most a hundred of them. */
  readonly count: number;
  readonly ids: readonly string[];
  readonly detail: string | null;
  readonly foundAt: Date;
}

/** What is written outside of the store after each pass, and held against it at the next. */
export interface Position {
  /** Which store it is of. */
  readonly installation: string;
  readonly pass: number;
  readonly at: string;
  readonly accepted: number;
  /** The sum of the hashes of all ids that were ever accepted. */
  readonly acceptedHash: string;
  readonly seals: number;
  readonly head: string;
}

export interface Totals {
  readonly accepted: number;
  readonly delivered: number;
  readonly resolved: number;
  readonly discarded: number;
  readonly archived: number;
  readonly live: number;
  readonly buckets: number;
  readonly sealed: number;
  /** The oldest hour that has not cleared; null: all have. */
  readonly oldestOpenHour: Date | null;
}

export interface ConservationReport {
  readonly state: ConservationState;
  /** Why it is not proven; null when it is whole or broken. */
  readonly reason: string | null;
  readonly since: Date;
  readonly pass: number;
  readonly passedAt: Date | null;
  /** When every live message had last been compared. */
  readonly comparedAt: Date | null;
  readonly totals: Totals | null;
  /** At most a thousand. */
  readonly divergences: readonly Divergence[];
  readonly divergencesTotal: number;
  /** What this engine cannot prove, in sentences. */
  readonly limits: readonly string[];
}

export interface PassOptions {
  /** `slice`: what fits the budget. `whole`: everything that is not sealed. `full`: what is sealed and still here, too. */
  readonly reach: "slice" | "whole" | "full";
  /** Of the store's time; absent: as long as it takes. */
  readonly budgetMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What another place found, kept with the store's own so that every process says the same. */
export interface Found {
  readonly kind: string;
  readonly topic?: string | null | undefined;
  readonly tenantId?: string | null | undefined;
  readonly hour?: Date | null | undefined;
  readonly count: number;
  readonly ids: readonly string[];
  readonly detail: string | null;
  /** Where in what was looked at, in the order of its texts; needed where a look is at a part. */
  readonly place?: string | undefined;
}

export interface Beside {
  readonly found: readonly Found[];
  /** What was looked at: what was found elsewhere before stays found. Absent: all of it. */
  readonly part?: { readonly after: string; readonly to: string } | undefined;
  /** Why it could not be looked at; null: it was. */
  readonly unknown: string | null;
}

/** `retired`: its day was taken by retention; it may have been in it, and a sum does not say so of a single id. */
export type Whereabouts = "unknown" | "retired" | "live" | "delivered" | "dead" | "resolved" | "discarded";

export interface Conservation {
  /** Compares; safe if two do it at once. */
  pass(options: PassOptions): Promise<void>;
  /** Replaces what was found in places beside the store; then says how it stands, and keeps that. */
  conclude(beside: Readonly<Record<string, Beside>>, at?: At): Promise<ConservationReport>;
  /** How it stood after the last pass of any process; null: there was none. */
  report(): Promise<ConservationReport | null>;
  /** Where the store stands now; null: no pass has ended, and none can have ended before that is forgotten. */
  position(): Promise<Position | null>;
  /** What the store said at an earlier pass; null: it does not remember that far, or never made it. */
  positionAt(pass: number): Promise<Position | null>;
  /** Of each id, in the order given. */
  whereabouts(ids: readonly string[]): Promise<Whereabouts[]>;
}

export interface WithConservation {
  readonly conservation: Conservation;
}

export function conservationOf(store: Store): Conservation | null {
  return (store as Store & Partial<WithConservation>).conservation ?? null;
}
