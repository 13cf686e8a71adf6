import type { Claim } from "../message/message.ts";
import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { Store } from "../store/store.ts";
export interface LeaseState {
    readonly claim: Claim;
    readonly leaseMs: number;
    readonly receivedMs: number;
    size: number;
    /** Messages without an outcome. */
    unfinished: number;
    /** Messages whose settlement is not written. */
    unsettled: number;
    untilMs: number;
    extendAtMs: number;
    lost: boolean;
    suspicion: number;
}
export interface LeaseTableOptions {
    readonly store: Store;
    readonly clock: Clock;
    readonly events: Events;
    /** Told when the store says that a lease is not ours any more. */
    readonly lost: (lease: LeaseState) => void;
}
export declare class LeaseTable {
    #private;
    constructor(options: LeaseTableOptions);
    get size(): number;
    /** The lease of a message that has just been claimed, with one more message in it. */
    take(claim: Claim, leaseMs: number, askedMs: number, nowMs: number, suspicion: number): LeaseState;
    /** How many leases over suspects of this degree have messages without an outcome. */
    suspects(suspicion: number): number;
    settled(lease: LeaseState): void;
    /** Whether there is still time to begin something under it. */
    static lasts(lease: LeaseState, nowMs: number): boolean;
    /** Extends what has used a third of its time. One call at a time; a failed one is tried again at the next sweep. */
    extendDue(nowMs: number): Promise<void>;
}
