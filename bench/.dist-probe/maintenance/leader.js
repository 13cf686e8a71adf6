/**
 * A leadership lease, renewed at a third of its time and given up when stopped. It only decides who does a chore that one
 * process may as well do for all; a leader that stalled past its lease does no harm (I9).
 */
import { errorText } from "../message/errors.js";
import { startLoop } from "../platform/loop.js";
export function startLeader({ store, name, owner, clock, events, ttlMs = 15_000 }) {
    let until = Number.NEGATIVE_INFINITY;
    let term = "";
    const loop = startLoop({
        clock,
        step: async () => {
            const askedMs = clock.monotonicMs();
            const leadership = await store.lead(name, owner, ttlMs);
            // Counted from before the question: our view may end early, never late.
            until = leadership.held ? askedMs + ttlMs : Number.NEGATIVE_INFINITY;
            if (leadership.held && leadership.term !== term) {
                term = leadership.term;
                events.emit({ type: "lifecycle", what: "leader", detail: { name, owner, term } });
            }
            return ttlMs / 3;
        },
        failed: (error, consecutive) => {
            events.emit({ type: "store_error", during: "lead", error: errorText(error), consecutive });
            return Math.min(5_000, 500 * 2 ** Math.min(consecutive, 4));
        },
    });
    return {
        get held() {
            return clock.monotonicMs() < until;
        },
        async stop() {
            const held = this.held;
            await loop.stop();
            // The lease runs out by itself; giving it up only lets the next one begin sooner.
            if (held)
                await store.lead(name, owner, 0).catch(() => undefined);
        },
    };
}
//# sourceMappingURL=leader.js.map