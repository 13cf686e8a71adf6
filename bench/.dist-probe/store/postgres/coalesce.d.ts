/**
 * Gathers single enqueues of independent callers into one statement while earlier ones are on their way: one commit, one
 * fsync for many. Each caller still waits for its own commit and gets its own answer; one bad message fails alone.
 */
import type { Accepted } from "../../message/message.ts";
import type { Placed } from "./enqueue.ts";
import type { LaneInfo } from "./lane-table.ts";
export declare function createCoalescer(insert: (batch: readonly Placed[]) => Promise<Accepted[]>, told: (lanes: readonly LaneInfo[]) => void): (placed: Placed) => Promise<Accepted>;
