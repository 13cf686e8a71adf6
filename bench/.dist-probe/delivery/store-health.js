/**
 * How the store fares as one worker sees it: after a failure everything rests, longer each time and never in step with
 * other workers, so that a store that is down is neither hammered nor given up.
 */
import { errorText } from "../message/errors.js";
const REST_MS = 100;
const REST_MS_MAX = 5_000;
export class StoreHealth {
    #clock;
    #random;
    #events;
    #failures = 0;
    #restUntilMs = Number.NEGATIVE_INFINITY;
    constructor(clock, random, events) {
        this.#clock = clock;
        this.#random = random;
        this.#events = events;
    }
    /** Failures in a row. */
    get failures() {
        return this.#failures;
    }
    /** Monotonic moment before which the store is left alone. */
    get restUntilMs() {
        return this.#restUntilMs;
    }
    ok() {
        this.#failures = 0;
    }
    failed(during, error) {
        this.#failures++;
        const restMs = Math.min(REST_MS_MAX, REST_MS * 2 ** Math.min(this.#failures - 1, 10));
        this.#restUntilMs = this.#clock.monotonicMs() + restMs * (0.5 + this.#random.next() / 2);
        this.#events.emit({ type: "store_error", during, error: errorText(error), consecutive: this.#failures });
    }
}
//# sourceMappingURL=store-health.js.map