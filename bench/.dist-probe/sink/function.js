/**
 * The function sink: a message is delivered to a function of this process. Returning means delivered, throwing means
 * retry, and an Outcome that is returned or thrown is taken at its word. A synchronous handler costs no promise.
 */
import { errorText } from "../message/errors.js";
import { LIMITS } from "../message/limits.js";
import { DELIVERED, DUPLICATE } from "../message/outcome.js";
import { systemClock } from "../platform/clock.js";
import { oneLine } from "./one-line.js";
/** How much later than its moment an abort may be noticed, in exchange for fast handlers that pay nothing for it. */
const WATCH_AFTER_MS = 10;
const YOUNG_MAX = 1_000;
/** "This message will never fit": it becomes a dead letter at once. Return it from a handler, or throw it. */
export function reject(reason, options = {}) {
    return { kind: "reject", code: options.code ?? "rejected", error: reason };
}
/** "Not now": the attempt failed, and the next comes no sooner than `afterMs`. Return it from a handler, or throw it. */
export function retry(reason, options = {}) {
    return {
        kind: "retry",
        code: options.code ?? "handler_retry",
        error: reason,
        retryAfterMs: options.afterMs,
        alert: options.alert,
    };
}
export function functionSink(handler, options = {}) {
    const parse = options.parse ?? JSON.parse;
    const wait = createWaiter(options.clock ?? systemClock);
    const sink = {
        kind: "function",
        deliver(delivery, context) {
            let payload;
            try {
                payload = parse(delivery.payload);
            }
            catch (thrown) {
                return { kind: "reject", code: "payload_unreadable", error: bounded(errorText(thrown)) };
            }
            try {
                const result = handler(payload, delivery, context);
                if (result === undefined)
                    return DELIVERED;
                return isThenable(result) ? wait(result, context) : outcomeOf(result);
            }
            catch (thrown) {
                return outcomeOfThrow(thrown);
            }
        },
    };
    const { probe } = options;
    return probe === undefined ? sink : { ...sink, probe };
}
function isThenable(value) {
    return typeof value === "object" && value !== null && typeof value.then === "function";
}
/**
 * Waits for a promise, but not past the attempt's signal: a handler that outlives its deadline is left alone, and
 * whether its effect lands nobody knows. A signal costs more than most handlers, so it is read only for what still
 * runs after WATCH_AFTER_MS, with one timer for all of them.
 */
function createWaiter(clock) {
    let young = [];
    const watchAll = () => {
        const due = young;
        young = [];
        for (const running of due)
            if (!running.settled)
                running.watch();
    };
    return (result, context) => new Promise((resolve) => {
        let signal;
        const cutShort = () => resolve(unknownOutcome(context.signal));
        const settle = (outcome) => {
            running.settled = true;
            signal?.removeEventListener("abort", cutShort);
            resolve(outcome);
        };
        const running = {
            settled: false,
            watch() {
                signal = context.signal;
                if (signal.aborted)
                    cutShort();
                else
                    signal.addEventListener("abort", cutShort, { once: true });
            },
        };
        const waiting = young.push(running);
        if (waiting === 1)
            clock.after(WATCH_AFTER_MS, watchAll, true);
        // I10: handlers that keep the event loop busy keep the timer from running, not the list from ending.
        if (waiting >= YOUNG_MAX)
            watchAll();
        result.then((value) => settle(outcomeOf(value)), (thrown) => settle(outcomeOfThrow(thrown)));
    });
}
function unknownOutcome(signal) {
    const reason = signal.reason;
    return reason instanceof Error && reason.name === "TimeoutError"
        ? { kind: "unknown", code: "timeout", error: "the handler did not finish before its deadline" }
        : { kind: "unknown", code: "aborted", error: "the attempt was cut short while the handler ran" };
}
function outcomeOf(value) {
    return asOutcome(value) ?? DELIVERED;
}
function outcomeOfThrow(thrown) {
    return asOutcome(thrown) ?? { kind: "retry", code: "handler_error", error: bounded(errorText(thrown)) };
}
/** Null when the value is not an Outcome. Handlers are often untyped, so a known kind is completed, never trusted to be whole. */
function asOutcome(value) {
    if (typeof value !== "object" || value === null)
        return null;
    const given = value;
    const code = typeof given.code === "string" ? bounded(given.code, 100) : "handler_error";
    const error = bounded(typeof given.error === "string" ? given.error : "the handler gave no reason");
    switch (given.kind) {
        case "delivered":
            return DELIVERED;
        case "duplicate":
            return DUPLICATE;
        case "reject":
        case "unknown":
        case "disable":
            return { kind: given.kind, code, error };
        case "retry": {
            const afterMs = given.retryAfterMs;
            const retryAfterMs = typeof afterMs === "number" && Number.isFinite(afterMs) ? afterMs : undefined;
            return { kind: "retry", code, error, retryAfterMs, alert: given.alert === true };
        }
        case "interrupted":
        case "lost":
            // Not answers a sink may give: nothing was delivered, so it counts as a failed attempt.
            return { kind: "retry", code: "handler_error", error: `the handler returned "${given.kind}", which only a worker may say` };
        default:
            return null;
    }
}
function bounded(text, bytesMax = LIMITS.errorBytesMax) {
    return oneLine(text, bytesMax);
}
//# sourceMappingURL=function.js.map