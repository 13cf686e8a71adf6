/**
 * The memory store: the oracle, the smallest correct implementation of the Store seam. It survives nothing and serves one
 * process; tests, simulation and the last rung of the fallback ladder use it.
 */
import { MakegoodError } from "../../message/errors.js";
import { systemClock } from "../../platform/clock.js";
import { systemRandom } from "../../platform/random.js";
import { claim, extend, reclaim } from "./claim.js";
import { enqueue } from "./enqueue.js";
import { intervene } from "./intervene.js";
import { listLanes } from "./lanes.js";
import { counts, history, list, view } from "./read.js";
import { settle } from "./settle.js";
import { createState } from "./state.js";
import { createTopics } from "./topics.js";
import { lead, prune } from "./upkeep.js";
export function createMemoryStore(options = {}) {
    const state = createState(options.clock ?? systemClock, options.random ?? systemRandom);
    let closed = false;
    const alive = () => {
        if (closed)
            throw new MakegoodError("closed", "The memory store is closed, and what it held is gone with it.");
    };
    /** Each call runs to its end without a pause, so no other call sees half of it. */
    const on = (call) => async (...args) => {
        alive();
        return call(state, ...args);
    };
    return {
        traits: { name: "memory", survives: "nothing", callerTransactions: false, processes: "one", wake: "poll" },
        topics: createTopics(state, alive),
        open: async () => alive(),
        check: async () => alive(),
        close: async () => {
            closed = true;
            state.listeners.clear();
        },
        enqueue: on(enqueue),
        lanes: on(listLanes),
        claim: on(claim),
        extend: on(extend),
        settle: on(settle),
        reclaim: on(reclaim),
        wake(listener) {
            // A wrapper of its own for each call, so that a listener added twice is removed once.
            const heard = (what) => listener(what);
            state.listeners.add(heard);
            return () => state.listeners.delete(heard);
        },
        idle: on(() => { }),
        get: on(({ messages }, id) => {
            const stored = messages.get(id);
            return stored ? view(stored) : null;
        }),
        list: on(list),
        counts: on(counts),
        history: on(history),
        intervene: on(intervene),
        prune: on(prune),
        lead: on(lead),
    };
}
//# sourceMappingURL=memory-store.js.map