/**
 * Runs the maintenance jobs: each in a loop of its own, so that a slow or failing one holds up no other, and those that
 * one process can do for all only under leadership.
 */
import { errorText } from "../message/errors.js";
import { startLoop } from "../platform/loop.js";
import { startLeader } from "./leader.js";
export function startMaintenance({ store, owner, clock, random, events, jobs }) {
    const ledOnes = jobs.some(({ where }) => where === "leader");
    const leader = ledOnes ? startLeader({ store, name: "maintenance", owner, clock, events }) : null;
    const loops = jobs.map((job) => startLoop({
        clock,
        step: async (signal) => {
            if (job.where === "each" || leader?.held)
                await job.run(signal);
            // Processes that were started together drift apart.
            return job.everyMs * (0.9 + random.next() * 0.2);
        },
        failed: (error, consecutive) => {
            events.emit({ type: "store_error", during: job.name, error: errorText(error), consecutive });
            return Math.min(Math.max(job.everyMs, 1_000), 60_000);
        },
    }));
    events.emit({ type: "lifecycle", what: "maintenance_started", detail: { jobs: jobs.map(({ name }) => name) } });
    return {
        async stop() {
            await Promise.all(loops.map((loop) => loop.stop()));
            await leader?.stop();
        },
    };
}
//# sourceMappingURL=maintenance.js.map