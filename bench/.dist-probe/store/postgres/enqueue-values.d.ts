/**
 * The parameters of the enqueue statements, in the order that statements/enqueue.ts documents: text only, so that every
 * driver and ORM passes them on unchanged.
 */
import type { Placed } from "./enqueue.ts";
import { type Parts } from "./statements/enqueue.ts";
export declare function shortValues({ message, lane }: Placed): unknown[];
export declare function batchValues(placed: readonly Placed[], tx: boolean): {
    parts: Parts;
    values: unknown[];
};
