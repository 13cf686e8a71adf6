/**
 * CLAIM of messages with ordering keys: only the head of a key (lowest id among visible rows), only when it is due and nothing
 * of its key is in flight. The head is chosen from the snapshot, *that* row is locked, then its order_lock must succeed: taking
 * "the first unlocked one" instead would hand out the second message while the first is being claimed.
 */
import type { ClaimedMessage } from "../../../message/message.ts";
import type { ClaimRequest } from "../../store.ts";
import type { Db } from "../db.ts";
/** The key each lane's next claim starts after, so that many keys take turns. */
export type Rotation = Map<number, string>;
export declare function claimOrdered(db: Db, rotation: Rotation, lanes: readonly {
    id: number;
    limit: number;
}[], request: ClaimRequest, { bytesMax, atLeastOne }: {
    bytesMax: number;
    atLeastOne: boolean;
}): Promise<ClaimedMessage[]>;
