import type { Scene } from "./scene.ts";
export declare const topicCases: Record<string, (scene: Scene) => Promise<void>>;
export declare const breakerCases: Record<string, (scene: Scene) => Promise<void>>;
