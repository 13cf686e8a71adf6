import type { Settlement } from "../message/settlement.ts";
import type { Events } from "../observe/events.ts";
import { type Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { SettleResult, Store } from "../store/store.ts";
import type { Attempt } from "./attempt.ts";
export interface SettlerOptions {
    readonly store: Store;
    readonly clock: Clock;
    readonly random: Random;
    readonly events: Events;
    /** Told of each settlement that was written or is lost for good. */
    readonly settled: (attempt: Attempt, result: SettleResult) => void;
    /** Told after each write: there is room again. */
    readonly room: () => void;
}
export declare class Settler {
    #private;
    constructor(options: SettlerOptions);
    /** Outcomes that are not written yet. */
    get backlog(): number;
    /** Failed writes in a row. */
    get failures(): number;
    add(attempt: Attempt, settlement: Settlement, durationMs: number | null): void;
    /** After a burst of outcomes. `last`: nothing runs any more that could join them. */
    consider(last: boolean): void;
    /** Writes everything and waits for it, but not longer than `ms`: what is left comes back when its lease ends. */
    close(ms: number): Promise<void>;
}
