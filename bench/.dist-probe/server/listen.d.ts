import { type Clock } from "../platform/clock.ts";
export interface ListenOptions {
    readonly fetch: (request: Request) => Response | Promise<Response>;
    readonly host: string;
    readonly port: number;
    readonly clock: Clock;
    /** For tests of slow senders. */
    readonly headersTimeoutMs?: number | undefined;
    readonly requestTimeoutMs?: number | undefined;
}
export interface Listening {
    readonly url: string;
    readonly port: number;
    /** Takes no new connection, waits up to `graceMs` for answers under way, then cuts the rest. */
    close(graceMs: number): Promise<void>;
}
export declare function listen(options: ListenOptions): Promise<Listening>;
