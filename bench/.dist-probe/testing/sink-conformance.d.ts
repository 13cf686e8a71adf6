import type { Outcome } from "../message/outcome.ts";
import { type Clock } from "../platform/clock.ts";
import type { DeliverContext, Delivery, Sink } from "../sink/sink.ts";
/** `accept`: take the message. `hang`: take it and never answer. `break`: fail in the ugliest way there is. */
export type ReceiverMode = "accept" | "hang" | "break";
export interface Received {
    readonly body: string | Uint8Array;
    /** Null where this kind of receiver cannot see it. */
    readonly idempotencyKey: string | null;
}
export interface SinkRig {
    readonly sink: Sink;
    /** How the receiver treats what comes from now on. It starts with `accept`. */
    behave(mode: ReceiverMode): void;
    /** Everything that arrived so far, in order of arrival. */
    received(): readonly Received[];
    close(): Promise<void>;
}
export interface SinkHarness {
    open(): Promise<SinkRig>;
    /** The modes that this receiver can play; all of them if absent. */
    readonly modes?: readonly ReceiverMode[] | undefined;
    /** What should arrive for a delivery; its payload if absent. */
    readonly bodyOf?: ((delivery: Delivery) => string) | undefined;
    /** What should arrive as the key; the idempotency key itself if absent. */
    readonly keyOf?: ((delivery: Delivery) => string) | undefined;
}
export interface SinkCase {
    readonly name: string;
    run(): Promise<void>;
}
/** A delivery for tests; every field can be set. */
export declare function testDelivery(over?: Partial<Delivery>): Delivery;
/** A context as a worker makes it: the signal aborts at the deadline, or earlier by `abort()`. */
export declare function testContext(timeoutMs?: number, clock?: Clock): DeliverContext & Disposable & {
    abort(): void;
};
export declare function sinkConformance(name: string, harness: SinkHarness): SinkCase[];
/** Fails unless the value is an outcome that a sink may give, whole. */
export declare function assertOutcome(outcome: Outcome): void;
