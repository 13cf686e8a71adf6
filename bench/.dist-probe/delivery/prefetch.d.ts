/**
 * How many messages a worker holds: more than run at once, so that a fast sink never waits for a claim, but not many more
 * when the sink is slow, because what is held by one worker cannot be started by another and shares its fate in a crash.
 */
export interface Prefetch {
    /** How many to hold at most. */
    readonly target: number;
    /** How many one claim may ask for: half of it, so that two overlap. */
    readonly claimMax: number;
    /** A whole batch has its outcomes, so long after it came. */
    batchDone(size: number, ms: number): void;
    /** Something has been waiting for its start for too long. */
    tooMuch(): void;
}
export declare function createPrefetch(concurrency: number): Prefetch;
