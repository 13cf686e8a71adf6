import type { Accepted, NewMessage } from "../../message/message.ts";
import type { EnqueueOptions } from "../store.ts";
import type { Db } from "./db.ts";
import { type LaneInfo } from "./lane-table.ts";
export interface Placed {
    readonly message: NewMessage;
    readonly lane: LaneInfo;
}
export type Enqueue = (messages: readonly NewMessage[], options?: EnqueueOptions) => Promise<Accepted[]>;
/** `told` hears of the lanes that have new work, after their commit. */
export declare function createEnqueue(db: Db, told: (lanes: readonly LaneInfo[]) => void): Enqueue;
/** Keys that come twice in one call are settled here: the statement itself must see each key once. */
export declare function withoutRepeats(placed: readonly Placed[]): {
    first: Placed[];
    repeats: Map<number, number>;
};
