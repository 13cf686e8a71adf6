import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { Store } from "../store/store.ts";
import type { MaintenanceJob } from "./job.ts";
export interface Maintenance {
    stop(): Promise<void>;
}
export interface MaintenanceOptions {
    readonly store: Store;
    readonly owner: string;
    readonly clock: Clock;
    readonly random: Random;
    readonly events: Events;
    readonly jobs: readonly MaintenanceJob[];
}
export declare function startMaintenance({ store, owner, clock, random, events, jobs }: MaintenanceOptions): Maintenance;
