/**
 * PRUNE: a day leaves as a whole once everything in it is settled and past its time; the few that still live are copied out
 * first (I2). Every step can be repeated: whoever comes next finishes what a crash left half done. It also keeps partitions ahead.
 */
import type { PruneRequest } from "../../store.ts";
import type { Db } from "../db.ts";
export declare function createPrune(db: Db): (request: PruneRequest) => Promise<number>;
