/**
 * When to ask the store which lanes have work: each poll, soon after a hint that names no lane we know, and some time
 * after a lane ran dry, because only the store knows what is due next. One question at a time, and none often enough to
 * weigh anything.
 */
import type { Clock } from "../platform/clock.ts";
import type { Store } from "../store/store.ts";
import type { LaneTable } from "./lanes.ts";
import type { StoreHealth } from "./store-health.ts";
export interface LookOptions {
    readonly store: Store;
    readonly clock: Clock;
    readonly lanes: LaneTable;
    readonly health: StoreHealth;
    readonly pollMs: number;
    readonly looked: () => void;
}
export declare class Look {
    #private;
    constructor(options: LookOptions);
    get underWay(): boolean;
    /** A hint named something we do not know. */
    soon(): void;
    /** What is due next is not known any more. */
    again(): void;
    /** Monotonic moment of the next look. `unheard`: nobody sends us hints now, so looking is how new lanes are found. */
    dueMs(unheard: boolean): number;
    look(): Promise<void>;
}
