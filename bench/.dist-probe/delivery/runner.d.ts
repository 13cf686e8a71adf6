import type { Events } from "../observe/events.ts";
import { type Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { TopicStore } from "../store/topics.ts";
import { type Attempt } from "./attempt.ts";
import { type LeaseState, LeaseTable } from "./leases.ts";
import type { Prefetch } from "./prefetch.ts";
import type { Settler } from "./settler.ts";
import { type TopicState } from "./topic-state.ts";
import type { TopicTable } from "./topic-table.ts";
export interface RunnerOptions {
    readonly topics: TopicTable;
    readonly topicStore: TopicStore;
    readonly clock: Clock;
    readonly random: Random;
    readonly events: Events;
    readonly concurrency: number;
    readonly prefetch: Prefetch;
    readonly settler: Settler;
    readonly leases: LeaseTable;
    /** Told when slots came free. */
    readonly freed: () => void;
    readonly track: (call: Promise<unknown>) => void;
}
export declare class Runner {
    #private;
    constructor(options: RunnerOptions);
    get running(): number;
    get waiting(): number;
    /** Payload bytes held, about: until they are settled, because until then they are in memory. */
    get bytes(): number;
    /** Its settlement is written, or somebody else's. */
    settled(attempt: Attempt): void;
    take(attempt: Attempt): void;
    /** Starts what may start; called after every arrival and every end. */
    run(): void;
    /** Gives back what has not been started, as if it had never been claimed. */
    releaseWhere(chosen: (topic: TopicState, index: number) => boolean): void;
    /** The lease belongs to somebody else: nothing under it may be started, and what runs is told to stop. */
    lost(lease: LeaseState): void;
    /** Lets attempts finish for `drainMs`, then interrupts them. Nothing is held afterwards. */
    drain(drainMs: number): Promise<void>;
    /** The last timer; after everything is settled. */
    close(): void;
}
