/**
 * POSTs bodies to one url: the part that the http, webhook and notify sinks share. It keeps connections alive, bounds
 * how many there are, dials only what the guard lets through, and follows no redirect.
 */
import type { ConnectionOptions } from "node:tls";
import { type Clock } from "../platform/clock.ts";
import { type AddressGuard } from "./address-guard.ts";
import { type Answer } from "./exchange.ts";
import { type FlatHeaders } from "./request-headers.ts";
import type { DeliverContext } from "./sink.ts";
export interface PosterOptions {
    readonly url: string;
    readonly headers?: Readonly<Record<string, string>> | undefined;
    /** Total for one attempt; the context's own limit holds as well. */
    readonly timeoutMs?: number | undefined;
    /** The sink may use private and loopback addresses. */
    readonly trusted?: boolean | undefined;
    /** A private certificate authority, or a client certificate. Verification cannot be turned off. */
    readonly tls?: Pick<ConnectionOptions, "ca" | "cert" | "key"> | undefined;
    readonly connectionsMax?: number | undefined;
}
export interface PosterDeps {
    readonly guard?: AddressGuard | undefined;
    readonly clock?: Clock | undefined;
}
export interface Poster {
    /** `headers` in addition to the configured ones. */
    post(body: string, headers: FlatHeaders, context: DeliverContext): Promise<Answer>;
    close(): Promise<void>;
}
export declare function createPoster(options: PosterOptions, deps?: PosterDeps): Poster;
