/**
 * The route table: every address of the API, its method, who may use it and which handler answers. Documentation, the 405
 * answers and the tests of access read the same table.
 */
import type { Metrics } from "../observe/metrics.ts";
import type { Health } from "./health.ts";
import type { Handler } from "./http.ts";
import type { Kernel } from "./kernel.ts";
export interface Route {
    readonly method: "GET" | "POST" | "PUT" | "DELETE";
    readonly path: string;
    /** Answers without a token: what an orchestrator must be able to ask. */
    readonly open: boolean;
    readonly handler: Handler;
}
export declare function routes(kernel: Kernel, health: Health, metrics: Metrics): readonly Route[];
