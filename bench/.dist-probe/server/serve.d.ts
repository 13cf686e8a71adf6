/**
 * One process with everything: the API, the dispatcher and maintenance on one store. It starts in an order in which each
 * part can rely on the ones before it, stops in the opposite one, and never touches signals or the exit code itself.
 */
import { createMakegood, type Makegood } from "../create.ts";
import type { Worker } from "../delivery/worker.ts";
import { type Log } from "../observe/log.ts";
import { type Clock } from "../platform/clock.ts";
import type { Store } from "../store/store.ts";
import { type Config, type FileTopic } from "./config.ts";
import type { Kernel } from "./kernel.ts";
export interface ServeOptions {
    readonly config: Config;
    readonly log: Log;
    readonly clock?: Clock | undefined;
    /** Instead of the one that the configuration names; the caller's to dispose of after close(). */
    readonly store?: Store | undefined;
    /** Something broke that only a new process mends; called at most once. */
    readonly failed?: ((reason: string) => void) | undefined;
    readonly headersTimeoutMs?: number | undefined;
    readonly requestTimeoutMs?: number | undefined;
}
export interface RunningServer extends AsyncDisposable {
    readonly url: string;
    readonly port: number;
    readonly mg: Makegood;
    /** Not ready any more, no new connections, the dispatcher drained within `drainMs`, everything closed. Idempotent. */
    close(options?: {
        readonly drainMs?: number | undefined;
    }): Promise<void>;
}
/** What a running kernel needs to be put behind the API. */
export interface KernelParts {
    readonly config: Pick<Config, "payload_bytes_max" | "sink_allow">;
    readonly mg: Makegood;
    readonly log: Log;
    readonly clock: Clock;
    readonly worker: Worker | null;
    readonly draining: () => boolean;
}
export declare function kernelOf({ config, mg, log, clock, worker, draining }: KernelParts): Kernel;
export declare function startServer(options: ServeOptions): Promise<RunningServer>;
/** The settings of a Makegood that a configuration stands for. */
export declare function makegoodOptions(config: Config, store: Store, log: Log, clock: Clock): Parameters<typeof createMakegood>[0];
/** The file is the authority for what it names; a topic that it named once and no longer does is left alone, and said so. */
export declare function declareFileTopics(store: Store, topics: readonly FileTopic[], log: Log): Promise<void>;
