/**
 * Where pending messages wait: a list by (due, id) for each lane, and for ordered lanes a list by id for each ordering key.
 * Nothing else knows how a lane is named.
 */
import type { At, Lane } from "../store.ts";
import { type LaneState, type OrderingKey, type State, type Stored } from "./state.ts";
type Order = (a: Stored, b: Stored) => number;
export declare const byDue: Order;
/** Puts a pending message where it waits. A held one that is not ordered waits nowhere: it is never due. */
export declare function park(state: State, stored: Stored): void;
/** Takes a pending message out of where it waits. Call before its due time or suspicion changes. */
export declare function unpark(state: State, stored: Stored): void;
/** Takes what a claim chose out of where it waits. In a lane without order that is always its front: one cut for all of it. */
export declare function unparkClaimed(state: State, chosen: readonly Stored[]): void;
/** The lane a message belongs to now, made when it is missing. */
export declare function laneOf(state: State, stored: Stored): LaneState;
/** The ordering key of an ordered message. */
export declare function keyOf(state: State, stored: Stored): OrderingKey;
/** Drops what has become empty, so that lanes and keys do not pile up (I10). */
export declare function tidy(state: State, stored: Stored): void;
/** The messages of a lane that may be claimed once they are due, first one first. */
export declare function claimable(lane: LaneState): Stored[];
export declare function listLanes(state: State, at?: At): Lane[];
export {};
