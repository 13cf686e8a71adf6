import { type Scene } from "./scene.ts";
export declare const orderingContentionCases: Record<string, (scene: Scene) => Promise<void>>;
