/**
 * What this process knows of the leases it holds: which messages, in which order, and which of them are still open. It only
 * chooses the cheaper statement and says when a lease row can go; safety is the token in the database, not this memory.
 */
import type { ClaimedMessage } from "../../message/message.ts";
import type { Settle } from "../../message/settlement.ts";
export interface OpenLeases {
    claimed(messages: readonly ClaimedMessage[], ordered: (message: ClaimedMessage) => boolean): void;
    /** By lease and token, in the order given. */
    group(settles: readonly Settle[]): Map<string, Settle[]>;
    /** All of a lease, all delivered, nothing of it settled before, no ordering keys. */
    isWholeAndPlain(group: readonly Settle[]): boolean;
    /** Durations in the order of the lease's ids; null when all are below a millisecond. */
    durations(group: readonly Settle[]): string | null;
    /** Nothing of the lease stays open after this group. */
    endsWith(group: readonly Settle[]): boolean;
    /** The lane a message was claimed from, while its lease is known here. */
    laneOf(one: Settle): number | undefined;
    settled(settles: readonly Settle[]): void;
}
export declare function createOpenLeases(): OpenLeases;
