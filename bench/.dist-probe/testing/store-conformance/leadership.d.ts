import type { Scene } from "./scene.ts";
export declare const leadershipCases: Record<string, (scene: Scene) => Promise<void>>;
