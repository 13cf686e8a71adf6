/**
 * The Journal seam: the local, fsynced last resort of the fallback ladder. What it has kept survives power loss and stays until a store
 * above has taken it; what it cannot keep it refuses as a value, at once and without a throw.
 */
import type { HandedDown } from "./handed-down.ts";

export type Appended =
  | { readonly kind: "kept" }
  | { readonly kind: "refused"; readonly code: "journal_full" | "journal_failed"; readonly error: string };

export interface JournalStats {
  /** Entries that a store above still has to take. */
  readonly waiting: number;
  /** Entries that no store will take as they are, kept for a person. */
  readonly quarantined: number;
  readonly bytes: number;
  readonly bytesMax: number;
  /** When the oldest waiting one was handed down, wall clock; null without one. */
  readonly oldestAtMs: number | null;
}

/** Something about its files that a person should know. */
export interface JournalNote {
  readonly what: "torn_tail" | "corrupt_record" | "unreadable_entry" | "taken_over" | "lost_segment" | "segment_abandoned";
  readonly file: string;
  readonly offset?: number | undefined;
  readonly bytes?: number | undefined;
  readonly detail?: string | undefined;
}

/** What was last seen in the durable store of this place: lets a start without it be refused (DF-29). */
export interface KnownStore {
  readonly name: string;
  readonly unsettled: number;
  readonly at: string;
}

export interface Journal {
  readonly directory: string;
  /** Makes the directory, reads what is there and takes over what nobody uses any more. */
  open(): Promise<void>;
  /** Resolves when it is on disk, or when it cannot be. Callers at the same time share one fsync. */
  append(entry: HandedDown): Promise<Appended>;
  /** Oldest first, without those in `skip`. */
  waiting(limit: number, skip?: ReadonlySet<string>): Promise<HandedDown[]>;
  /** A store above has them. */
  done(ids: readonly string[]): Promise<void>;
  /** Stays, but is offered to no store again. */
  quarantine(id: string, reason: string): Promise<void>;
  /** Takes over what processes that are gone left behind. Returns how many entries came with it. */
  takeOver(): Promise<number>;
  /** Entries of other processes that use the directory now are counted where `all` says so. */
  stats(): JournalStats;
  remember(known: KnownStore): Promise<void>;
  remembered(): Promise<KnownStore | null>;
  close(): Promise<void>;
}
