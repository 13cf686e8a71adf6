/**
 * What follows from a settlement that was written, or could not be: the lane may have one message more, and one event says
 * what became of the attempt.
 */
import type { Events } from "../observe/events.ts";
import type { SettleResult } from "../store/store.ts";
import type { Attempt } from "./attempt.ts";
export declare function announceSettled(attempt: Attempt, result: SettleResult, events: Events, nowMs: number): void;
