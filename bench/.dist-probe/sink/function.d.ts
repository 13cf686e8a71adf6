import { type Outcome } from "../message/outcome.ts";
import { type Clock } from "../platform/clock.ts";
import type { DeliverContext, Delivery, Sink } from "./sink.ts";
/** `delivery.payload` is the exact text; `payload` is what `parse` made of it. */
export type Handler<T = unknown> = (payload: T, delivery: Delivery, context: DeliverContext) => unknown | Promise<unknown>;
export interface FunctionSinkOptions<T = unknown> {
    /** Runs once per delivery, JSON.parse if absent. A throw rejects the message: the same text will never parse. */
    readonly parse?: ((text: string) => T) | undefined;
    readonly clock?: Clock | undefined;
    /** Asks whether an attempt whose outcome is unknown landed. */
    readonly probe?: ((delivery: Delivery, context: DeliverContext) => Promise<Outcome>) | undefined;
}
/** "This message will never fit": it becomes a dead letter at once. Return it from a handler, or throw it. */
export declare function reject(reason: string, options?: {
    readonly code?: string;
}): Outcome;
/** "Not now": the attempt failed, and the next comes no sooner than `afterMs`. Return it from a handler, or throw it. */
export declare function retry(reason: string, options?: {
    readonly afterMs?: number;
    readonly code?: string;
    readonly alert?: boolean;
}): Outcome;
export declare function functionSink<T = unknown>(handler: Handler<T>, options?: FunctionSinkOptions<T>): Sink;
