import { type Handler } from "./http.ts";
import type { Kernel } from "./kernel.ts";
export interface TopicHandlers {
    readonly put: Handler;
    readonly get: Handler;
    readonly list: Handler;
    readonly remove: Handler;
    readonly pause: Handler;
    readonly resume: Handler;
}
export declare function topicHandlers(kernel: Kernel): TopicHandlers;
