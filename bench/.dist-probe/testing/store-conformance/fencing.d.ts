import { type Scene } from "./scene.ts";
export declare const fencingCases: Record<string, (scene: Scene) => Promise<void>>;
