import { type Scene } from "./scene.ts";
export declare const contentionCases: Record<string, (scene: Scene) => Promise<void>>;
