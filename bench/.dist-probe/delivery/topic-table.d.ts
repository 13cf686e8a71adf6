/**
 * This process's fresh view of the topics: every record as the store has it, the rules decide() needs, and the sink that
 * serves it here. Looked at again each second while somebody works and at each hint; a changed definition gets a new sink,
 * and the old one is closed when its last attempt is over.
 */
import type { DecideRules } from "../message/decide.ts";
import type { TopicRecord } from "../message/topic.ts";
import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { Sink } from "../sink/sink.ts";
import type { Store } from "../store/store.ts";
/** A sink and how many attempts are using it. */
export interface SinkHandle {
    readonly sink: Sink;
    users: number;
    retired: boolean;
}
/** One topic; the object stays the same while its record changes. */
export interface TopicEntry {
    readonly name: string;
    record: TopicRecord;
    rules: DecideRules;
    timeoutMs: number;
    /** Monotonic: the record's countdowns run from here. */
    seenMs: number;
    gone: boolean;
    /** Null: this process has no sink for it. Undefined: not asked for yet. */
    handle: SinkHandle | null | undefined;
}
export interface TopicTableOptions {
    readonly store: Store;
    readonly clock: Clock;
    readonly events: Events;
    /** Null when this process cannot serve the topic; may throw. */
    readonly makeSink: (record: TopicRecord) => Sink | null;
}
export declare class TopicTable {
    #private;
    constructor(options: TopicTableOptions);
    entry(name: string): TopicEntry | undefined;
    entries(): IterableIterator<TopicEntry>;
    /** What is known without asking; asks in the background when that is old. */
    known(name: string): TopicRecord | undefined;
    find(name: string): Promise<TopicRecord | null>;
    /** Takes over a record that came from the store by another way than a refresh. */
    learn(record: TopicRecord): void;
    /** The sink that serves a topic here, made when it is first needed. */
    sink(entry: TopicEntry): SinkHandle | null;
    release(handle: SinkHandle): void;
    /** Calls back after each refresh; the first watcher starts the clock, the last one stops it. */
    watch(listener: () => void): () => void;
    /** One at a time; whoever calls during a refresh shares the one that begins after it. */
    refresh(): Promise<void>;
    close(): Promise<void>;
}
