/**
 * The store that a configuration names: the server of DATABASE_URL, else the embedded PostgreSQL of the data directory.
 * Whoever opens it closes it: the embedded server stops with the last process that uses it.
 */
import type { Log } from "../observe/log.ts";
import type { Store } from "../store/store.ts";
import type { Config } from "./config.ts";
export interface OpenedStore {
    /** Not opened yet: createMakegood does that. */
    readonly store: Store;
    readonly url: string;
    /** Stops the embedded server if it is ours; the store itself is closed by whoever opened it. */
    release(): Promise<void>;
}
export interface StoreUrl {
    readonly url: string;
    readonly embedded: boolean;
    release(): Promise<void>;
}
export interface StoreOptions {
    readonly config: Pick<Config, "database_url" | "data_dir" | "schema" | "concurrency">;
    readonly log: Log;
    /** The embedded server had to move: connections to the old address will not work again. */
    readonly moved?: (() => void) | undefined;
    readonly signal?: AbortSignal | undefined;
}
export declare function storeUrl({ config, log, moved, signal }: StoreOptions): Promise<StoreUrl>;
export declare function openStore(options: StoreOptions): Promise<OpenedStore>;
