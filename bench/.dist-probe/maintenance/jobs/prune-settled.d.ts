/**
 * Retention: lets the store delete what is settled and past its time, in bounded steps, so that no step holds locks or the
 * disk for long. Never anything else (I2): what is settled and when is the store's own judgement.
 */
import type { Events } from "../../observe/events.ts";
import type { Store } from "../../store/store.ts";
import type { MaintenanceJob } from "../job.ts";
export interface PruneOptions {
    readonly store: Store;
    readonly events: Events;
    readonly keptMs: number;
}
export declare function pruneSettled({ store, events, keptMs }: PruneOptions): MaintenanceJob;
