export interface RetryConfig {
    readonly policy: string;
    readonly attemptsMax?: number | undefined;
    readonly baseMs?: number | undefined;
    readonly maxMs?: number | undefined;
    /** `equal`: between half the delay and the delay. `none`: the delay itself. */
    readonly jitter?: "equal" | "none" | undefined;
    readonly tableMs?: readonly number[] | undefined;
}
/** A policy with every number filled in. */
export interface RetryPolicy {
    readonly name: string;
    readonly attemptsMax: number;
    readonly baseMs: number;
    readonly maxMs: number;
    readonly jitter: "equal" | "none";
    /** Null: exponential from `baseMs`, doubling, capped at `maxMs`. */
    readonly tableMs: readonly number[] | null;
}
export declare const RETRY_POLICIES: ReadonlyMap<string, RetryPolicy>;
/** Fills a topic's retry settings in from the policy it names; undefined when nobody registered that name. */
export declare function retryPolicy(config: RetryConfig): RetryPolicy | undefined;
/**
 * The wait around attempt `n` (from 1). An enqueued message waits `delay(n)` after failed attempt n; one handed down by
 * `deliver()` waits `delay(n)` before attempt n, because its direct try already was the attempt that failed first.
 */
export declare function retryDelayMs(policy: RetryPolicy, n: number, random: number): number;
