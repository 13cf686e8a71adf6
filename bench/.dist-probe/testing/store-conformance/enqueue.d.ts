import type { Scene } from "./scene.ts";
export declare const enqueueCases: Record<string, (scene: Scene) => Promise<void>>;
