import type { Health } from "./health.ts";
import type { Handler } from "./http.ts";
export declare function pageHandler(health: Health): Handler;
export declare function escapeHtml(text: string): string;
