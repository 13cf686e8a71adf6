/**
 * One HTTP exchange: sends a request through undici's lowest door and says what came back, exactly once and never as a
 * throw. It knows whether bytes were sent (undici tells when it starts to write), it lets the status decide however
 * large or slow the body is, and it holds no connection longer than a short, bounded time after that.
 */
import type { Dispatcher } from "undici";
import type { Outcome } from "../message/outcome.ts";
import type { Clock } from "../platform/clock.ts";
import type { DeliverContext } from "./sink.ts";
export type Answer = {
    readonly kind: "answered";
    readonly status: number;
    readonly retryAfter: string | null;
    readonly body: string;
} | {
    readonly kind: "failed";
    readonly outcome: Outcome;
};
export type Request = Pick<Dispatcher.DispatchOptions, "origin" | "path" | "method" | "headers" | "body">;
export declare function exchange(dispatcher: Dispatcher, request: Request, context: DeliverContext, timeoutMs: number, clock: Clock): Promise<Answer>;
