import { type Handler } from "./http.ts";
import type { Kernel } from "./kernel.ts";
import { type Reply } from "./problem.ts";
export declare function messageHandlers(kernel: Kernel): {
    post: Handler;
    get: Handler;
    list: Handler;
};
export declare function noSuchMessage(id: string): Reply;
