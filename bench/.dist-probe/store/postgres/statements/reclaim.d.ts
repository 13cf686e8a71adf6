/**
 * RECLAIM: takes over expired leases. Two statements, in this order: fence (a new token), then look. In one statement the look
 * would use a snapshot that may be older than a settle which just committed, and the message would be delivered and pending.
 */
import type { ClaimedMessage } from "../../../message/message.ts";
import type { At } from "../../store.ts";
import type { Db } from "../db.ts";
export declare function createReclaim(db: Db): (request: {
    readonly owner: string;
    readonly leaseMs: number;
    readonly limit: number;
} & At) => Promise<ClaimedMessage[]>;
