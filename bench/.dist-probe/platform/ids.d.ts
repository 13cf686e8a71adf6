/**
 * UUID version 7: the time in front, so that ids sort by when they were made and choose their day's partition. Within one
 * process they only rise, also inside one millisecond, because the ordering of messages with one key is the order of ids.
 */
import { type Clock } from "./clock.ts";
import { type Random } from "./random.ts";
/** A maker of rising ids. Random bits are drawn for many ids at once: one system call for each would cost more than the id. */
export declare function createIds(clock?: Clock, random?: Random): () => string;
export declare function isUuid(text: string): boolean;
/** The first id of a millisecond: bounds of a day's partition. */
export declare function idFloor(ms: number): string;
/** When an id was made, by its maker's clock. */
export declare function idTimeMs(id: string): number;
