/**
 * GET, HISTORY, COUNTS: what people and programs look at. Counts cover what is not delivered: pending, processing and dead;
 * the delivered are counted by events as they happen, not by reading them all.
 */
import type { AttemptRecord, MessageView, ProvenanceRecord } from "../../../message/message.ts";
import type { StatusCount } from "../../store.ts";
import { type Db } from "../db.ts";
export declare function createReads(db: Db): {
    get(id: string): Promise<MessageView | null>;
    history(id: string): Promise<{
        attempts: AttemptRecord[];
        provenance: ProvenanceRecord[];
    }>;
    counts({ delivered }?: {
        readonly delivered?: boolean | undefined;
    }): Promise<StatusCount[]>;
};
