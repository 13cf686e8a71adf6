import type { Transaction } from "../store.ts";
import type { Db } from "./db.ts";
export declare function refusePool(tx: Transaction): void;
/** Runs a statement of ours in it; rows come back as arrays whatever the driver makes of them. */
export declare function queryIn(db: Db, tx: Transaction, text: string, values: unknown[], name?: string): Promise<(string | null)[][]>;
