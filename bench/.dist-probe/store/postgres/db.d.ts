/**
 * What every statement needs: our connections, the quoted schema, and the lanes.
 */
import type { Clock } from "../../platform/clock.ts";
import type { Connection } from "./connection.ts";
import type { LaneTable } from "./lane-table.ts";
export interface Db {
    readonly connection: Connection;
    /** The schema, quoted. */
    readonly s: string;
    readonly lanes: LaneTable;
    readonly clock: Clock;
}
/** attempt.outcome, as stored. */
export declare const OUTCOME_CODES: {
    readonly delivered: 1;
    readonly duplicate: 2;
    readonly retry: 3;
    readonly reject: 4;
    readonly unknown: 5;
    readonly lost: 6;
    readonly interrupted: 7;
};
export declare const OUTCOME_NAMES: readonly ["", "delivered", "duplicate", "retry", "reject", "unknown", "lost", "interrupted"];
/** dead_letter.resolution, as stored; 3 is a dead letter that was replayed and is no longer one. */
export declare const RESOLUTION_CODES: {
    readonly open: 0;
    readonly resolved: 1;
    readonly discarded: 2;
    readonly replayed: 3;
};
export declare const RESOLUTION_NAMES: readonly ["open", "resolved", "discarded"];
