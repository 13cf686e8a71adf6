/**
 * Facts out, never control in: each step of the walk emits one event; metrics, log and live views listen. A listener that
 * throws is cut off from nothing but its own event, and emitting with no listener costs one comparison.
 */
import type { AttemptOutcome } from "../message/message.ts";
export type MakegoodEvent = {
    readonly type: "accepted";
    readonly topic: string;
    readonly inserted: number;
    readonly duplicate: number;
} | {
    readonly type: "claimed";
    readonly count: number;
    readonly ms: number;
} | {
    readonly type: "attempt";
    readonly topic: string;
    readonly id: string;
    readonly attempt: number;
    readonly outcome: AttemptOutcome;
    readonly status: "delivered" | "pending" | "dead" | "held";
    readonly ms: number;
    readonly code: string | null;
    readonly error: string | null;
    readonly alert: boolean;
}
/** The outcome was not written: somebody else owns the message now. */
 | {
    readonly type: "claim_lost";
    readonly topic: string;
    readonly id: string;
    readonly attempt: number;
} | {
    readonly type: "reclaimed";
    readonly count: number;
} | {
    readonly type: "breaker";
    readonly topic: string;
    readonly state: "open" | "half_open" | "closed";
    readonly reason: string | null;
} | {
    readonly type: "sink_disabled";
    readonly topic: string;
    readonly reason: string;
} | {
    readonly type: "intervened";
    readonly id: string;
    readonly action: string;
    readonly actor: string;
    readonly reason: string | null;
} | {
    readonly type: "pruned";
    readonly count: number;
} | {
    readonly type: "store_error";
    readonly during: string;
    readonly error: string;
    readonly consecutive: number;
} | {
    readonly type: "lifecycle";
    readonly what: string;
    readonly detail?: Readonly<Record<string, unknown>> | undefined;
};
export type EventListener = (event: MakegoodEvent) => void;
export interface Events {
    emit(event: MakegoodEvent): void;
    on(listener: EventListener): () => void;
    /** False lets a hot path skip building an event nobody reads. */
    readonly heard: boolean;
}
export declare function createEvents(): Events;
