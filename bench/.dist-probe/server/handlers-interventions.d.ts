import type { Intervention } from "../store/store.ts";
import { type Handler } from "./http.ts";
import type { Kernel } from "./kernel.ts";
/** Not found, wrong state and a moved revision are thrown by the kernel and become their problems in the app. */
export declare function interventionHandler(kernel: Kernel, action: Intervention["action"]): Handler;
