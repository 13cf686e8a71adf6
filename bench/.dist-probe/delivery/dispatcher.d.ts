import type { Events } from "../observe/events.ts";
import { type Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { Store } from "../store/store.ts";
import type { TopicTable } from "./topic-table.ts";
import type { StopOptions, WorkerStatus } from "./worker.ts";
export interface DispatcherOptions {
    readonly store: Store;
    readonly topics: TopicTable;
    readonly events: Events;
    readonly clock: Clock;
    readonly random: Random;
    readonly owner: string;
    readonly patterns: readonly string[];
    readonly concurrency: number;
    readonly pollMs: number;
    readonly drainMs: number;
}
export declare class Dispatcher {
    #private;
    readonly owner: string;
    constructor(options: DispatcherOptions);
    status(): WorkerStatus;
    stop(options?: StopOptions): Promise<void>;
}
export declare function startDispatcher(options: DispatcherOptions): Dispatcher;
