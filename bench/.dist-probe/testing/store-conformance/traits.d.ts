import type { Scene } from "./scene.ts";
export declare const traitCases: Record<string, (scene: Scene) => Promise<void>>;
