/**
 * How rows of audit and provenance leave without breaking the proof of them (decision 0036): code that deletes some calls this first, in
 * the same transaction, and deletes those that it gives back.
 */
import type { Run } from "./home.ts";

/** The tables that are covered, by what they hold. */
export type EvidenceName = "audit" | "provenance" | "recovery_provenance";

export interface DepartureReason {
  /** retired: past its retention. erased: because a person asked. */
  readonly kind: "retired" | "erased";
  readonly actor: string;
  readonly reason: string;
}

/** A few thousand at most in one transaction. Returns the ids that may go. */
export type Depart = (run: Run, source: EvidenceName, ids: readonly string[], why: DepartureReason) => Promise<string[]>;

export interface DepartingMonth {
  /** Quoted, with its schema. */
  readonly table: string;
  /** What it holds, by the time of storing: from this moment until before that one. */
  readonly from: Date;
  readonly to: Date;
}

/** For a whole month of audit records whose table is dropped in the same transaction. */
export type DepartMonth = (run: Run, month: DepartingMonth) => Promise<void>;
