export function createState(clock, random) {
    return {
        clock,
        random,
        messages: new Map(),
        dedupe: new Map(),
        lanes: new Map(),
        leases: new Map(),
        topics: new Map(),
        leaders: new Map(),
        listeners: new Set(),
        leasesMade: 0,
    };
}
/** The moment of a call: the caller's in tests and simulation, else the store's clock. */
export function nowMs(state, at) {
    return at?.now?.getTime() ?? state.clock.wallMs();
}
/** Tells listeners after the write; one that throws must not change what happened to a message. */
export function hint(state, what) {
    for (const listener of state.listeners) {
        try {
            listener(what);
        }
        catch {
            // Hints may be lost: polling is the truth.
        }
    }
}
//# sourceMappingURL=state.js.map