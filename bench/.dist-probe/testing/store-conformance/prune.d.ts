import type { Scene } from "./scene.ts";
export declare const pruneCases: Record<string, (scene: Scene) => Promise<void>>;
