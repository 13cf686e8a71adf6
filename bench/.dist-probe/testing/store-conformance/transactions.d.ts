import type { Scene } from "./scene.ts";
export declare const transactionCases: Record<string, (scene: Scene) => Promise<void>>;
export declare const noTransactionCases: Record<string, (scene: Scene) => Promise<void>>;
