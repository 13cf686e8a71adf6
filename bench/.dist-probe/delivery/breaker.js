/**
 * The circuit breaker of one topic in one worker. Five different messages failing in a row open it; open, it holds messages
 * without spending attempts; when its cool-down is over one worker of all gets the probe and tries one message. The state
 * itself is the store's, shared by all workers; here is only what this worker saw and what it may do.
 */
import { errorText } from "../message/errors.js";
import { DEFAULTS } from "../message/limits.js";
const COOLDOWN_BASE_MS = 1_000;
const PROBE_MARGIN_MS = 2_000;
export function cooldownMs(trips) {
    return Math.min(DEFAULTS.breakerCooldownMs, COOLDOWN_BASE_MS * 2 ** Math.min(trips, 30));
}
export class Breaker {
    #name;
    #deps;
    /** Failed messages since the last success → when. */
    #failed = new Map();
    /** This worker has the probe, until then and since then. */
    #probeUntilMs = Number.NEGATIVE_INFINITY;
    #probeSinceMs = Number.POSITIVE_INFINITY;
    #askedMs = Number.NEGATIVE_INFINITY;
    #tripping = false;
    #resetting = false;
    constructor(name, deps) {
        this.#name = name;
        this.#deps = deps;
    }
    /** `one`: only the probe. */
    admits(nowMs) {
        if (this.#tripping)
            return "none";
        const entry = this.#deps.entry(this.#name);
        if (!entry || entry.record.breaker.state === "closed" || this.#resetting)
            return "all";
        return nowMs < this.#probeUntilMs ? "one" : "none";
    }
    /** Proof that the receiver lives: delivered, or an answer about the message itself. */
    proved() {
        if (this.#failed.size > 0)
            this.#failed.clear();
        const entry = this.#deps.entry(this.#name);
        if (!entry || entry.record.breaker.state === "closed" || this.#resetting || this.#tripping)
            return;
        this.#resetting = true;
        this.#endProbe();
        this.#call("breaker_reset", async () => {
            try {
                await this.#deps.topics.reset(this.#name);
                this.#learn(entry, { state: "closed", probeInMs: 0, trips: 0, reason: null });
            }
            finally {
                this.#resetting = false;
            }
        });
    }
    /** `startedMs`: when the attempt began; one from before the probe says nothing about the probe. */
    failed(id, startedMs, nowMs, reason) {
        const entry = this.#deps.entry(this.#name);
        if (!entry || this.#tripping)
            return;
        if (entry.record.breaker.state !== "closed") {
            if (nowMs < this.#probeUntilMs && startedMs >= this.#probeSinceMs)
                this.#trip(entry, reason);
            return;
        }
        this.#failed.delete(id);
        this.#failed.set(id, nowMs);
        for (const [old, atMs] of this.#failed) {
            if (nowMs - atMs <= DEFAULTS.breakerWindowMs)
                break;
            this.#failed.delete(old);
        }
        if (this.#failed.size >= DEFAULTS.breakerFailures)
            this.#trip(entry, reason);
    }
    /** Asks for the probe when the cool-down is over. Returns how long until it may be asked for; Infinity: not open. */
    seekProbe(nowMs) {
        const entry = this.#deps.entry(this.#name);
        if (!entry || entry.record.breaker.state === "closed" || this.#tripping)
            return Number.POSITIVE_INFINITY;
        if (nowMs < this.#probeUntilMs)
            return Number.POSITIVE_INFINITY;
        const inMs = Math.max(entry.seenMs + entry.record.breaker.probeInMs - nowMs, this.#askedMs + 500 - nowMs);
        if (inMs > 0)
            return inMs;
        this.#askedMs = nowMs;
        this.#call("breaker_probe", async () => {
            const leaseMs = entry.timeoutMs + PROBE_MARGIN_MS;
            if (!(await this.#deps.topics.probe(this.#name, this.#deps.owner, leaseMs)))
                return;
            this.#probeSinceMs = nowMs;
            this.#probeUntilMs = nowMs + leaseMs;
            this.#learn(entry, { ...entry.record.breaker, state: "half_open", probeInMs: leaseMs });
        });
        return Number.POSITIVE_INFINITY;
    }
    #trip(entry, reason) {
        this.#tripping = true;
        this.#failed.clear();
        this.#endProbe();
        const forMs = cooldownMs(entry.record.breaker.trips);
        this.#call("breaker_trip", async () => {
            try {
                this.#learn(entry, await this.#deps.topics.trip(this.#name, forMs, reason));
            }
            finally {
                this.#tripping = false;
            }
        });
    }
    #endProbe() {
        this.#probeUntilMs = Number.NEGATIVE_INFINITY;
        this.#probeSinceMs = Number.POSITIVE_INFINITY;
    }
    /** The store's answer, at once: the next refresh would bring the same. */
    #learn(entry, breaker) {
        entry.record = { ...entry.record, breaker };
        entry.seenMs = this.#deps.clock.monotonicMs();
        this.#deps.events.emit({ type: "breaker", topic: this.#name, state: breaker.state, reason: breaker.reason });
    }
    #call(during, call) {
        const done = call()
            .catch((error) => {
            this.#deps.events.emit({ type: "store_error", during, error: errorText(error), consecutive: 1 });
        })
            .finally(this.#deps.changed);
        this.#deps.track(done);
    }
}
//# sourceMappingURL=breaker.js.map