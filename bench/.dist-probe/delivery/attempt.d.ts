import type { ClaimedMessage } from "../message/message.ts";
import type { Outcome } from "../message/outcome.ts";
import type { Settle } from "../message/settlement.ts";
import type { DeliverContext, Sink } from "../sink/sink.ts";
import type { LaneEntry } from "./lanes.ts";
import type { LeaseState } from "./leases.ts";
import type { SinkHandle } from "./topic-table.ts";
export type Cut = "deadline" | "lost" | "shutdown";
export declare class Attempt implements DeliverContext {
    #private;
    readonly message: ClaimedMessage;
    readonly lane: LaneEntry;
    readonly lease: LeaseState;
    handle: SinkHandle | null;
    timeoutMs: number;
    startedMs: number;
    /** Why and when it was aborted. */
    cut: Cut | null;
    cutMs: number;
    /** It has its outcome; a late answer changes nothing. */
    over: boolean;
    /** A person should look at it. */
    alert: boolean;
    /** What is to be written, once it is known. */
    settle: Settle | null;
    constructor(message: ClaimedMessage, lane: LaneEntry, lease: LeaseState);
    get signal(): AbortSignal;
    abort(cut: Cut, nowMs: number): void;
}
/** Runs the sink. The promise, where there is one, never rejects. */
export declare function runAttempt(attempt: Attempt, sink: Sink): Outcome | Promise<Outcome>;
/** The outcome of an attempt that was aborted before its sink answered. */
export declare function cutShort(attempt: Attempt): Outcome;
/** Our own shutdown is nobody's failure: only an answer that ends the message counts after it. */
export declare function afterCut(attempt: Attempt, outcome: Outcome): Outcome;
