import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { Store } from "../store/store.ts";
export interface Leader {
    readonly held: boolean;
    stop(): Promise<void>;
}
export interface LeaderOptions {
    readonly store: Store;
    readonly name: string;
    readonly owner: string;
    readonly clock: Clock;
    readonly events: Events;
    readonly ttlMs?: number | undefined;
}
export declare function startLeader({ store, name, owner, clock, events, ttlMs }: LeaderOptions): Leader;
