import { type Client } from "./delivery/client.ts";
import type { AnyTopic } from "./delivery/topic.ts";
import type { StopOptions, Worker, WorkOptions } from "./delivery/worker.ts";
import type { TopicRecord } from "./message/topic.ts";
import { type EventListener, type Events } from "./observe/events.ts";
import { type Clock } from "./platform/clock.ts";
import { type Random } from "./platform/random.ts";
import type { Sink } from "./sink/sink.ts";
import type { Store } from "./store/store.ts";
export interface MakegoodOptions {
    readonly store: Store;
    readonly topics?: readonly AnyTopic[] | undefined;
    /** Who declares `topics`: the code itself, or a configuration file on its behalf. */
    readonly topicSource?: "code" | "file" | undefined;
    /** Attempts at once in one worker. */
    readonly concurrency?: number | undefined;
    readonly pollMs?: number | undefined;
    readonly drainMs?: number | undefined;
    /** How long settled messages are kept. */
    readonly keptMs?: number | undefined;
    /** CIDR ranges that sinks from the API may dial although they are private. */
    readonly sinkAllow?: readonly string[] | undefined;
    /** Chooses the sink of a topic before anything else does; undefined leaves it to the kernel, null: not served here. */
    readonly sinkFor?: ((record: TopicRecord) => Sink | null | undefined) | undefined;
    /** Where a notify sink without a URL writes; absent: an event `notice`. */
    readonly log?: ((line: string) => void) | undefined;
    /** True: close() leaves the store open, because somebody else uses it too. */
    readonly sharedStore?: boolean | undefined;
    readonly clock?: Clock | undefined;
    readonly random?: Random | undefined;
    readonly onEvent?: EventListener | undefined;
}
export interface Makegood extends Client, AsyncDisposable {
    readonly store: Store;
    readonly events: Events;
    /** Starts delivering; the first worker also starts maintenance. */
    work(options?: WorkOptions): Worker;
    /** Stops every worker, finishes what is being accepted, closes sinks and store. Idempotent. */
    close(options?: StopOptions): Promise<void>;
}
export declare function createMakegood(options: MakegoodOptions): Promise<Makegood>;
