import type { Suspicion } from "../../message/message.ts";
import type { Connection } from "./connection.ts";
/** lane.kind */
export declare const KIND_ORDERED = 3;
export interface LaneInfo {
    readonly id: number;
    readonly topicId: number;
    readonly topic: string;
    readonly tenant: string;
    readonly priority: number;
    /** 0 plain, 1 and 2 suspects, 3 ordered. */
    readonly kind: number;
}
export interface LaneTable {
    /** The lane of a message on its way in; throws `unknown_topic`. */
    of(topic: string, tenantId: string | null, priority: number, orderingKey: string | null): Promise<LaneInfo>;
    /** Without a round trip, when every part is known already. */
    known(topic: string, tenantId: string | null, priority: number, orderingKey: string | null): LaneInfo | undefined;
    /** The sibling where suspects of this lane wait (or where they return to). */
    sibling(lane: LaneInfo, suspicion: Suspicion): Promise<LaneInfo>;
    byId(ids: Iterable<number>): Promise<Map<number, LaneInfo>>;
    /** Forgets which topics exist: one was put or deleted. Lanes themselves never change. */
    forgetTopics(): void;
}
export declare function createLaneTable(connection: Connection, s: string, monotonicMs: () => number): LaneTable;
