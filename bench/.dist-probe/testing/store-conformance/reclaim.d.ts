import { type Scene } from "./scene.ts";
export declare const reclaimCases: Record<string, (scene: Scene) => Promise<void>>;
