import type { Connection } from "./connection.ts";
export declare const DAY_MS = 86400000;
export declare function dayOf(ms: number): number;
export declare function partitionSuffix(day: number): string;
/** The day a partition's name stands for, or null when it is not one of ours. */
export declare function dayOfPartition(name: string): number | null;
export declare function daysAround(nowMs: number): number[];
/**
 * One transaction a day. The advisory lock makes two makers take turns; the table is made first and attached then, because
 * CREATE … PARTITION OF would take a lock that waits for, and then blocks, every caller's open transaction.
 */
export declare function ensurePartitions(connection: Connection, s: string, days: readonly number[]): Promise<void>;
/** How many whole days of room are left ahead, for doctor and alerts. */
export declare function daysAhead(connection: Connection, s: string, nowMs: number): Promise<number>;
