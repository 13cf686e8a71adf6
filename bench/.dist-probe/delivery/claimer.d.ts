import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { Store } from "../store/store.ts";
import type { LaneEntry, LaneTable } from "./lanes.ts";
import type { LeaseTable } from "./leases.ts";
import type { Prefetch } from "./prefetch.ts";
import type { Runner } from "./runner.ts";
import type { Settler } from "./settler.ts";
import type { StoreHealth } from "./store-health.ts";
export interface ClaimerOptions {
    readonly store: Store;
    readonly owner: string;
    readonly clock: Clock;
    readonly events: Events;
    readonly lanes: LaneTable;
    readonly leases: LeaseTable;
    readonly runner: Runner;
    readonly settler: Settler;
    readonly prefetch: Prefetch;
    readonly health: StoreHealth;
    /** Told after each claim: whether it brought all it asked for, and whether a lane ran dry. */
    readonly took: (full: boolean, dry: boolean) => void;
    readonly track: (call: Promise<unknown>) => void;
}
export declare class Claimer {
    #private;
    constructor(options: ClaimerOptions);
    get underWay(): number;
    /** Whether another claim is worth making now. */
    get ready(): boolean;
    /** When the next plan may be made: planning over very many lanes must not become what the worker does. */
    get notBeforeMs(): number;
    /** Plans over the lanes and sends the claims. True when at least one was sent. */
    claimFrom(lanes: readonly LaneEntry[], nowMs: number): boolean;
}
