/**
 * One try at the sink: a claimed message on its way to an outcome. It has one total deadline, an abort signal that is made
 * only if the sink reads it, and costs no promise where the sink needs none. A throw is a retry; what is cut short after it
 * began is `unknown`.
 */
import { errorText } from "../message/errors.js";
export class Attempt {
    message;
    lane;
    lease;
    handle = null;
    timeoutMs = 0;
    startedMs = 0;
    /** Why and when it was aborted. */
    cut = null;
    cutMs = 0;
    /** It has its outcome; a late answer changes nothing. */
    over = false;
    /** A person should look at it. */
    alert = false;
    /** What is to be written, once it is known. */
    settle = null;
    #controller;
    constructor(message, lane, lease) {
        this.message = message;
        this.lane = lane;
        this.lease = lease;
    }
    get signal() {
        if (!this.#controller) {
            this.#controller = new AbortController();
            if (this.cut !== null)
                this.#controller.abort(cutReason(this.cut, this.timeoutMs));
        }
        return this.#controller.signal;
    }
    abort(cut, nowMs) {
        if (this.cut !== null)
            return;
        this.cut = cut;
        this.cutMs = nowMs;
        this.#controller?.abort(cutReason(cut, this.timeoutMs));
    }
}
function cutReason(cut, timeoutMs) {
    switch (cut) {
        case "deadline":
            return new DOMException(`the attempt took longer than ${timeoutMs} ms`, "TimeoutError");
        case "lost":
            return new DOMException("the claim was lost: another worker owns the message now", "AbortError");
        case "shutdown":
            return new DOMException("the worker is shutting down", "AbortError");
    }
}
function deliveryOf(message) {
    const { id, key } = message;
    return {
        id,
        topic: message.topic,
        tenantId: message.tenantId,
        idempotencyKey: key ?? id,
        key,
        payload: message.payload,
        attempt: message.attempt,
        traceparent: message.traceparent,
        schemaVersion: message.schemaVersion,
    };
}
/** Runs the sink. The promise, where there is one, never rejects. */
export function runAttempt(attempt, sink) {
    const delivery = deliveryOf(attempt.message);
    let answer;
    try {
        answer = sink.deliver(delivery, attempt);
    }
    catch (error) {
        return thrown(error, attempt);
    }
    if (isPromise(answer)) {
        return sink.probe
            ? answer.then((outcome) => probed(valid(outcome), delivery, attempt, sink)).catch((error) => thrown(error, attempt))
            : answer.then(valid).catch((error) => thrown(error, attempt));
    }
    const outcome = valid(answer);
    return outcome.kind === "unknown" && sink.probe ? probed(outcome, delivery, attempt, sink) : outcome;
}
/** An unknown effect is asked about before it is judged, within the same deadline. */
async function probed(outcome, delivery, attempt, sink) {
    if (outcome.kind !== "unknown" || !sink.probe || attempt.cut === "lost")
        return outcome;
    try {
        const answer = valid(await sink.probe(delivery, attempt));
        return answer.kind === "delivered" || answer.kind === "duplicate" || answer.kind === "retry" ? answer : outcome;
    }
    catch {
        return outcome;
    }
}
function isPromise(value) {
    return typeof value === "object" && value !== null && typeof value.then === "function";
}
function thrown(error, attempt) {
    if (attempt.cut !== null)
        return cutShort(attempt);
    return { kind: "retry", code: "handler_error", error: errorText(error) };
}
const KINDS = new Set(["delivered", "duplicate", "retry", "reject", "unknown", "disable"]);
/** A sink written in plain JavaScript may return anything; what is not an answer of a sink is a failed attempt. */
function valid(outcome) {
    if (outcome && KINDS.has(outcome.kind))
        return outcome;
    const kind = String(outcome?.kind);
    return { kind: "retry", code: "invalid_outcome", error: `the sink returned ${kind}, which is not an outcome of a sink` };
}
/** The outcome of an attempt that was aborted before its sink answered. */
export function cutShort(attempt) {
    if (attempt.cut === "shutdown")
        return { kind: "interrupted" };
    const error = `no answer within ${attempt.timeoutMs} ms: whether it took effect is not known`;
    return { kind: "unknown", code: "timeout", error };
}
/** Our own shutdown is nobody's failure: only an answer that ends the message counts after it. */
export function afterCut(attempt, outcome) {
    if (attempt.cut !== "shutdown")
        return outcome;
    const ended = outcome.kind === "delivered" || outcome.kind === "duplicate" || outcome.kind === "reject";
    return ended ? outcome : { kind: "interrupted" };
}
//# sourceMappingURL=attempt.js.map