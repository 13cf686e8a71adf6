import type { Scene } from "./scene.ts";
export declare const claimOrderCases: Record<string, (scene: Scene) => Promise<void>>;
