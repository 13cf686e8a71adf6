import type { Scene } from "./scene.ts";
export declare const limitCases: Record<string, (scene: Scene) => Promise<void>>;
