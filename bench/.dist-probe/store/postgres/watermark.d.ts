/**
 * Where the live rows of a lane begin. While an old transaction is open, vacuum cannot remove the index entries of claimed
 * rows, and a claim that starts at the beginning walks over all of them. A row whose transaction commits late may lie before
 * the mark, so a mark lives half a second at most and ends with the first short batch.
 */
export interface Watermark {
    readonly due: string;
    readonly id: string;
}
export interface Watermarks {
    of(lane: number, now: Date | undefined): Watermark;
    /** `marks`: the last claimed row of each lane and how many came, as the claim returns them. */
    advance(asked: readonly {
        id: number;
        limit: number;
    }[], marks: string | null): void;
}
export declare function createWatermarks(monotonicMs: () => number): Watermarks;
