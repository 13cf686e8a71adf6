import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
export declare class StoreHealth {
    #private;
    constructor(clock: Clock, random: Random, events: Events);
    /** Failures in a row. */
    get failures(): number;
    /** Monotonic moment before which the store is left alone. */
    get restUntilMs(): number;
    ok(): void;
    failed(during: string, error: unknown): void;
}
