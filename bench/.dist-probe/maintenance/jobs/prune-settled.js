const BATCH = 10_000;
const STEPS_MAX = 100;
const EVERY_MS = 60_000;
export function pruneSettled({ store, events, keptMs }) {
    return {
        name: "prune-settled",
        // A short retention is looked after often enough to mean something.
        everyMs: Math.min(EVERY_MS, Math.max(1_000, keptMs / 2)),
        where: "leader",
        async run(signal) {
            for (let step = 0; step < STEPS_MAX && !signal.aborted; step++) {
                const count = await store.prune({ keptMs, limit: BATCH });
                if (count > 0)
                    events.emit({ type: "pruned", count });
                if (count < BATCH)
                    return;
            }
        },
    };
}
//# sourceMappingURL=prune-settled.js.map