/**
 * Where a message stands, read in one snapshot: its state is where its row is. In `ready` it is pending, an attempt that
 * delivered makes it delivered, an unreplayed dead letter makes it dead, and what is left is under a lease.
 */
import type { MessageView } from "../../../message/message.ts";
import type { Row } from "../connection.ts";
/** $1: ids. */
export declare const viewSql: (s: string) => string;
export declare const fromEpoch: (seconds: string | null | undefined) => Date | null;
export declare function messageView(row: Row): MessageView;
