import type { Scene } from "./scene.ts";
export declare const wakeCases: Record<string, (scene: Scene) => Promise<void>>;
