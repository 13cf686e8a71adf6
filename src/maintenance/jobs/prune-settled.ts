/**
 * Retention: lets the store delete what is settled and past its time, in bounded steps, so that no step holds locks or the
 * disk for long. Never anything else (I2): the store alone decides what is settled and since when.
 */
import type { Events } from "../../observe/events.ts";
import type { MaintenanceJob } from "../../platform/job.ts";
import type { Store } from "../../store/store.ts";

export interface PruneOptions {
  readonly store: Store;
  readonly events: Events;
  readonly keptMs: number;
}

const BATCH = 10_000;
const STEPS_MAX = 100;
const EVERY_MS = 60_000;

export function pruneSettled({ store, events, keptMs }: PruneOptions): MaintenanceJob {
  return {
    name: "prune-settled",
    // A short retention needs a short interval.
    everyMs: Math.min(EVERY_MS, Math.max(1_000, keptMs / 2)),
    where: "leader",
    async run(signal) {
      for (let step = 0; step < STEPS_MAX && !signal.aborted; step++) {
        const count = await store.prune({ keptMs, limit: BATCH });
        if (count > 0) events.emit({ type: "pruned", count });
        if (count < BATCH) return;
      }
    },
  };
}
