import type { Scene } from "./scene.ts";
export declare const dedupeCases: Record<string, (scene: Scene) => Promise<void>>;
