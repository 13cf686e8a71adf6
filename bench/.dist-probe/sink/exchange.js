import { LIMITS } from "../message/limits.js";
import { outcomeOfCut, outcomeOfFailure } from "./failure.js";
/** How long a body may take after the status is known: to be read for its first words, and to free the connection. */
const BODY_WAIT_MS = 500;
/** Twice what is shown, so that a credential that the receiver echoes is whole when it is looked for. */
const BODY_KEPT_BYTES = 2_048;
export function exchange(dispatcher, request, context, timeoutMs, clock) {
    return new Promise((resolve) => {
        const running = new Exchange(resolve, context.signal, timeoutMs, clock);
        // undici's own timeouts count from chunk to chunk, so a trickle never ends; the deadline here is the only one.
        if (running.start())
            dispatcher.dispatch({ ...request, headersTimeout: 0, bodyTimeout: 0 }, running);
    });
}
class Exchange {
    #resolve;
    #signal;
    #timeoutMs;
    #clock;
    #startedMs;
    #cut = () => this.#cutShort();
    #deadline;
    #bodyTimer;
    #controller;
    #settled;
    #ended;
    #status = 0;
    #retryAfter = null;
    #encoding = null;
    #bytes = 0;
    #kept = [];
    constructor(resolve, signal, timeoutMs, clock) {
        this.#resolve = resolve;
        this.#signal = signal;
        this.#timeoutMs = timeoutMs;
        this.#clock = clock;
        this.#startedMs = clock.monotonicMs();
        this.#settled = false;
        this.#ended = false;
    }
    /** False when it is over before it began. */
    start() {
        if (this.#signal.aborted) {
            this.#cutShort();
            return false;
        }
        this.#deadline = this.#clock.after(this.#timeoutMs, this.#cut);
        this.#signal.addEventListener("abort", this.#cut, { once: true });
        return true;
    }
    /** undici calls this right before it writes to a connected socket: from here on the receiver may have acted. */
    onRequestStart(controller) {
        // The deadline passed while the request waited for a connection; it was reported as not sent, so it must not be.
        if (this.#settled)
            controller.abort(new Error("cut short before it was sent"));
        else
            this.#controller = controller;
    }
    onResponseStart(_controller, status, headers) {
        if (status < 200)
            return;
        this.#status = status;
        this.#retryAfter = firstOf(headers["retry-after"]);
        this.#encoding = firstOf(headers["content-encoding"]);
        if (status < 300)
            this.#settleByStatus();
        // Most bodies came in the same packet and are over before this runs: they cost no timer.
        queueMicrotask(() => {
            if (!this.#ended)
                this.#bodyTimer = this.#clock.after(BODY_WAIT_MS, () => this.#enough(), true);
        });
    }
    onResponseData(_controller, chunk) {
        if (!this.#settled)
            this.#kept.push(chunk.subarray(0, BODY_KEPT_BYTES));
        this.#bytes += chunk.length;
        if (this.#bytes >= BODY_KEPT_BYTES)
            this.#settleByStatus();
        if (this.#bytes > LIMITS.responseBytesMax)
            this.#enough();
    }
    onResponseEnd() {
        this.#end();
        this.#settleByStatus();
    }
    onResponseError(_controller, error) {
        this.#end();
        if (this.#status > 0)
            this.#settleByStatus();
        else
            this.#settle({ kind: "failed", outcome: outcomeOfFailure(error, this.#controller !== undefined) });
    }
    #cutShort() {
        if (this.#status > 0) {
            this.#enough();
            return;
        }
        const elapsedMs = this.#clock.monotonicMs() - this.#startedMs;
        const reason = this.#signal.reason;
        // Timers may fire a little early, and the worker's own deadline may win the race by a moment: late is late.
        const late = elapsedMs >= this.#timeoutMs - 5 || (reason instanceof Error && reason.name === "TimeoutError");
        this.#settle({ kind: "failed", outcome: outcomeOfCut(this.#controller !== undefined, late, this.#timeoutMs) });
        this.#drop();
    }
    /** The status is known and the body has had its time. */
    #enough() {
        this.#settleByStatus();
        this.#drop();
    }
    /** Closes the connection: the rest of a body nobody reads must not answer the next message. */
    #drop() {
        if (this.#ended)
            return;
        this.#end();
        this.#controller?.abort(new Error("the rest of the answer is not read"));
    }
    #end() {
        this.#ended = true;
        this.#bodyTimer?.cancel();
    }
    #settleByStatus() {
        if (this.#settled)
            return;
        // Never decompressed: a few bytes of gzip can become gigabytes, for words that only a person would read.
        const encoded = this.#encoding !== null && this.#encoding !== "identity";
        const body = encoded
            ? `(a body encoded as ${this.#encoding})`
            : Buffer.concat(this.#kept).toString("utf8", 0, BODY_KEPT_BYTES);
        this.#settle({ kind: "answered", status: this.#status, retryAfter: this.#retryAfter, body });
    }
    #settle(answer) {
        if (this.#settled)
            return;
        this.#settled = true;
        this.#kept = [];
        this.#deadline?.cancel();
        this.#signal.removeEventListener("abort", this.#cut);
        this.#resolve(answer);
    }
}
function firstOf(value) {
    const first = Array.isArray(value) ? value[0] : value;
    return typeof first === "string" ? first : null;
}
//# sourceMappingURL=exchange.js.map