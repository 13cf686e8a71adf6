/**
 * The addresses that machines look at: /livez says the process runs, /readyz that it can accept, /health how everything
 * stands, /metrics the numbers.
 */
import type { Metrics } from "../observe/metrics.ts";
import type { Health } from "./health.ts";
import { type Handler } from "./http.ts";
export interface ProbeHandlers {
    readonly livez: Handler;
    readonly readyz: Handler;
    readonly health: Handler;
    readonly metrics: Handler;
}
export declare function probeHandlers(health: Health, metrics: Metrics): ProbeHandlers;
