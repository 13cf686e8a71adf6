/**
 * What a store must bring to be tested, and what a case is. Nothing here depends on a test runner: a case is a name and a
 * function that throws when the store is wrong.
 */
import type { Store, Transaction } from "../../store/store.ts";

export interface StoreHarness {
  readonly name: string;
  /** A store that is open, empty and shares nothing with any other; closed by the case. */
  open(): Promise<Store>;
  /** A second open instance on the same data, as another process would have it; closed by the case. For `processes: "many"`. */
  another?(store: Store): Promise<Store>;
  /** A transaction of the caller's on the same data. For `callerTransactions: true`. */
  transaction?(store: Store): Promise<OpenTransaction>;
  /** What callers confuse with a transaction, a pool for one: to be refused with `not_a_transaction`. */
  pool?(store: Store): unknown;
  /** Ends the instance as a crash would and opens the same data again. For `survives` other than `nothing`. */
  reopen?(store: Store): Promise<Store>;
}

export interface OpenTransaction {
  readonly tx: Transaction;
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

export interface Case {
  readonly group: string;
  readonly name: string;
  run(): Promise<void>;
}
