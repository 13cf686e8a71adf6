/**
 * The only door to time and timers. Wall time is for ids and people; durations use the monotonic clock; what is due and
 * whose lease has ended is the store's clock alone.
 */
export interface Timer {
    cancel(): void;
}
export interface Clock {
    /** Wall clock, milliseconds since the epoch. */
    wallMs(): number;
    /** Monotonic, milliseconds from an arbitrary start. */
    monotonicMs(): number;
    /** Runs once after `ms`. `background`: does not keep the process alive. */
    after(ms: number, run: () => void, background?: boolean): Timer;
}
export declare const systemClock: Clock;
/** Resolves after `ms`, or at once when the signal aborts (it never rejects: the caller looks at the signal). */
export declare function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void>;
