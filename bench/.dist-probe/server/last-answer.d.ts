import { type Clock } from "../platform/clock.ts";
export interface Answer<T> {
    /** Undefined until the first good answer. */
    readonly value: T | undefined;
    /** Why the last question failed, or that it has not been answered yet; null when it was answered. */
    readonly error: string | null;
    /** How long ago the last good answer came. */
    readonly ageMs: number | null;
    readonly tookMs: number | null;
}
export interface LastAnswer<T> {
    /** An answer at most `keptMs` old if one can be had within `waitMs`; else the last one, marked with what is wrong. */
    read(waitMs: number): Promise<Answer<T>>;
}
export declare function createLastAnswer<T>(clock: Clock, keptMs: number, ask: () => Promise<T>): LastAnswer<T>;
