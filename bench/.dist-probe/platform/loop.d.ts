/**
 * One stoppable loop: runs a step again and again, never twice at once, sleeps as long as the step asks, wakes early when
 * nudged, and survives a step that throws. Stopping waits for the step that is under way.
 */
import type { Clock } from "./clock.ts";
export interface Loop {
    /** Shortens the sleep. A nudge during a step runs the step once more at once. */
    nudge(): void;
    stop(): Promise<void>;
}
export interface LoopOptions {
    readonly clock: Clock;
    /** Returns how long to sleep before the next step, in ms; 0 means at once. */
    readonly step: (signal: AbortSignal) => Promise<number>;
    /** Told of a step that threw; returns how long to wait before the next. */
    readonly failed: (error: unknown, consecutive: number) => number;
}
export declare function startLoop({ clock, step, failed }: LoopOptions): Loop;
