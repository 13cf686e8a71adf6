const SOON_MS = 20;
const AGAIN_MS = 100;
export class Look {
    #options;
    #lookedMs = Number.NEGATIVE_INFINITY;
    #wanted = "soon";
    #costMs = 0;
    #underWay = false;
    constructor(options) {
        this.#options = options;
    }
    get underWay() {
        return this.#underWay;
    }
    /** A hint named something we do not know. */
    soon() {
        this.#wanted = "soon";
    }
    /** What is due next is not known any more. */
    again() {
        if (this.#wanted === "poll")
            this.#wanted = "again";
    }
    /** Monotonic moment of the next look. `unheard`: nobody sends us hints now, so looking is how new lanes are found. */
    dueMs(unheard) {
        if (this.#underWay)
            return Number.POSITIVE_INFINITY;
        if (this.#wanted === "soon")
            return this.#lookedMs + Math.max(SOON_MS, 3 * this.#costMs);
        // A look over very many lanes has its price: the dearer, the rarer.
        const againMs = Math.max(AGAIN_MS, 10 * this.#costMs);
        return (this.#lookedMs + (unheard || this.#wanted === "again" ? Math.min(againMs, this.#options.pollMs) : this.#options.pollMs));
    }
    async look() {
        const { store, clock, lanes, health, looked } = this.#options;
        const askedMs = clock.monotonicMs();
        const mark = lanes.mark;
        this.#underWay = true;
        this.#wanted = "poll";
        try {
            lanes.seen(await store.lanes(), clock.monotonicMs(), mark);
            health.ok();
            this.#costMs += (Math.min(100, clock.monotonicMs() - askedMs) - this.#costMs) / 4;
        }
        catch (error) {
            this.#wanted = "again";
            health.failed("lanes", error);
        }
        finally {
            this.#lookedMs = askedMs;
            this.#underWay = false;
        }
        looked();
    }
}
//# sourceMappingURL=look.js.map