/**
 * The Journal seam: the local, fsynced last resort of the fallback ladder. What it has kept survives power loss and stays until a store
 * above has taken it; what it cannot keep it refuses as a value, at once and without a throw.
 */
import type { HandedDown } from "./ladder/format/handed-down.ts";
import type { AfterTry } from "./ladder/format/tried-below.ts";

export type Appended =
  | { readonly kind: "kept" }
  /** Another payload waits under its id; the first stands. */
  | { readonly kind: "conflict" }
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
  /**
   * Resolves when it is on disk, or when it cannot be. Callers at the same time share one fsync. What waits here already is kept as it is,
   * with its attempts.
   */
  append(entry: HandedDown): Promise<Appended>;
  /** Those that wait, oldest first, as far as they are known without reading the disk: of their payloads only the hash. */
  list(): Iterable<HandedDown>;
  /** Raised when entries came or went otherwise than by append(), done() and quarantine(): taken over, or lost to another process. */
  changes(): number;
  /** The entries with these ids; those that are gone meanwhile or cannot be read are left out. */
  read(ids: readonly string[]): Promise<HandedDown[]>;
  /** The first of those that wait, oldest first, without those in `skip`. */
  waiting(limit: number, skip?: ReadonlySet<string>): Promise<HandedDown[]>;
  /** An attempt begins, and is counted before it is made: one that ends with the process counts, too (I6). Null: the entry is not ours. */
  begin(id: string, attempt: number): Promise<HandedDown | null>;
  /** The attempt that was begun has ended; null: it was not made. Survives a crash of the process, not more: an attempt that is forgotten is made again. */
  ended(id: string, after: AfterTry | null): Promise<void>;
  /** A store above has them, or the receiver. */
  done(ids: readonly string[]): Promise<void>;
  /** Stays, but is offered to no store again. */
  quarantine(id: string, reason: string): Promise<void>;
  /** Takes over what processes that are gone left behind. Returns how many entries came with it. */
  takeOver(): Promise<number>;
  /** Entries of other processes that use the directory now are counted where `all` says so. */
  stats(): JournalStats;
  remember(known: KnownStore): Promise<void>;
  remembered(): Promise<KnownStore | null>;
  /** Whether messages with an ordering key may lie in the secondary store. Survives the process: the next one must not overtake them. */
  noteOrdered(holds: boolean): Promise<void>;
  notedOrdered(): Promise<boolean>;
  close(): Promise<void>;
}
