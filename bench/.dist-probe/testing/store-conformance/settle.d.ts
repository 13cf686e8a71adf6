import { type Scene } from "./scene.ts";
export declare const settleCases: Record<string, (scene: Scene) => Promise<void>>;
