/**
 * One thing the doctor looked at.
 */
export interface Finding {
    readonly name: string;
    /** `fail`: messages could be lost or are not delivered. `warn`: works, but somebody should know. */
    readonly status: "ok" | "warn" | "fail";
    readonly detail: string;
}
export declare function finding(name: string, status: Finding["status"], detail: string): Finding;
/** Ids carry our time and leases the store's: far apart, partitions and people are misled. */
export declare function clockSkew(theirMs: number, ourMs: number, coarseMs: number): Finding;
