import type { Scene } from "./scene.ts";
export declare const orderingCases: Record<string, (scene: Scene) => Promise<void>>;
