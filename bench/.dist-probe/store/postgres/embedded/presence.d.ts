import type { Clock } from "../../../platform/clock.ts";
import { type Loop } from "../../../platform/loop.ts";
export declare const TOUCH_EVERY_MS = 2000;
export type Presence = "here" | "elsewhere" | "gone";
export interface Witness {
    /** Call it again until it answers "gone": silence elsewhere can only be seen by looking more than once. */
    look(directory: string, name: string): Promise<Presence>;
}
export declare function createWitness(clock: Clock): Witness;
export declare function touch(clock: Clock, path: string): Promise<void>;
/** Touches a file until stopped, for a holder that is busy with something else. */
export declare function keepTouching(clock: Clock, path: string): Loop;
