import { type Metrics } from "../observe/metrics.ts";
import { type HostRule, type Token } from "./auth.ts";
import { type Health } from "./health.ts";
import type { Kernel } from "./kernel.ts";
export interface AppOptions {
    readonly kernel: Kernel;
    /** Empty: nobody needs a token, and whoever asks is `anonymous`. */
    readonly tokens: readonly Token[];
    /** The actor of changes while no token is needed. */
    readonly anonymous: string;
    /** Null where there is no network between the caller and us. */
    readonly hosts: HostRule | null;
}
export interface App {
    fetch(request: Request): Response | Promise<Response>;
    readonly health: Health;
    readonly metrics: Metrics;
}
export declare function createApp(options: AppOptions): App;
