import type { Scene } from "./scene.ts";
export declare const pagingCases: Record<string, (scene: Scene) => Promise<void>>;
