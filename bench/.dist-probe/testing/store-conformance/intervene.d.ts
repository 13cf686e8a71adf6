import type { Scene } from "./scene.ts";
export declare const interveneCases: Record<string, (scene: Scene) => Promise<void>>;
export declare const interveneRaceCases: Record<string, (scene: Scene) => Promise<void>>;
