/**
 * What a library brings to be judged: its own transactions with its own way to write, and everything that callers take for a
 * transaction although it is none.
 */
import type { Transaction } from "../../../src/store/store.ts";

export interface Caller {
  readonly tx: Transaction;
  /** Writes a row of the business table, the way people write rows with this library. */
  write(note: string): PromiseLike<unknown>;
}

export interface Library {
  /** Commits when `work` resolves, rolls back when it throws; the result or the error comes out. */
  transaction<T>(work: (caller: Caller) => Promise<T>): Promise<T>;
  /** Name → what is passed by mistake. */
  readonly mistakes: Readonly<Record<string, Transaction>>;
  close(): Promise<unknown>;
}

export interface LibraryKind {
  readonly name: string;
  /** Inside another transaction, whose isolation level cannot be chosen any more. */
  readonly nested?: boolean;
  /** The business table is `"<schema>".business (note text primary key)`. */
  open(url: string, schema: string): Promise<Library>;
}
