/**
 * The seam for moving what is not a message: recovery, audit with its evidence, and usage. Rows travel as the JSON text that the database
 * makes of them, under the ids that they have, so that whatever names one goes on naming it. Only PostgreSQL has a home for them.
 */
import type { Store } from "./store.ts";

export const RECORD_KINDS = ["recovery", "audit", "usage"] as const;
export type RecordKind = (typeof RECORD_KINDS)[number];

export interface RecordTable {
  readonly kind: RecordKind;
  readonly name: string;
  /** Those that are carried, as the table has them; what is counted from other rows is made anew. */
  readonly columns: readonly string[];
  /** The last number that it gave out itself, also if its row is gone; null: it gives out none. */
  readonly last: string | null;
}

export interface RecordPage {
  /** Each as JSON text, the same for rows that are the same. */
  readonly rows: readonly string[];
  /** For the next page; opaque. Null: that was the last. */
  readonly next: string | null;
}

/** How rows of a file stand in a store: `movedOn`: the same one, changed since. `wrong`: another one under its key. */
export type Standing = Readonly<Record<"same" | "movedOn" | "absent" | "wrong", number>>;

export interface MovableRecords {
  /** The names of their tables: with what it takes to prove rows only if none of those rows is left out. */
  wanted(kinds: readonly RecordKind[]): ReadonlySet<string>;
  /** In the order in which they are put: each after what it refers to. */
  tables(kinds: readonly RecordKind[]): Promise<RecordTable[]>;
  /** `all`: also of messages that are settled, where a row is about one. */
  read(table: RecordTable, after: string | null, all: boolean): Promise<RecordPage>;
  /** Whether this store knows such a table with such columns. */
  knows(table: RecordTable): Promise<boolean>;
  /** How many rows it has. */
  count(table: RecordTable): Promise<number>;
  /** Makes room for a table, and its numbers go on after the last one that was given out there. */
  prepare(table: RecordTable): Promise<void>;
  /** Those that are absent, in one write; returns how many. */
  put(table: RecordTable, rows: readonly string[]): Promise<number>;
  /** How they stand, and the rows that are there. */
  compare(table: RecordTable, rows: readonly string[]): Promise<Standing & { readonly there: readonly string[] }>;
  /** Tables whose rows belong to messages and are put after them. */
  isLast(name: string): boolean;
  /** Tables that hold where something stands, which is never two: what comes is merged, not compared. */
  isState(name: string): boolean;
}

export interface WithMovableRecords {
  readonly records: MovableRecords;
}

/** Null where a store has no home for them. */
export function movableRecordsOf(store: Store): MovableRecords | null {
  return (store as Store & Partial<WithMovableRecords>).records ?? null;
}
