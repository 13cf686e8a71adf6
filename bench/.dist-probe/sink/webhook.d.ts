import { type PosterDeps, type PosterOptions } from "./poster.ts";
import type { Sink } from "./sink.ts";
import { type Verdict } from "./verdict.ts";
export interface WebhookSinkOptions extends PosterOptions {
    /** `whsec_…`, the newest first; every one of them signs, so that receivers can change over in their own time. */
    readonly secrets: readonly string[];
}
export declare function webhookSink(options: WebhookSinkOptions, deps?: PosterDeps): Sink;
export declare function webhookVerdict(status: number): Verdict;
