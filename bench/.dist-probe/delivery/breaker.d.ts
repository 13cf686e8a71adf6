import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { TopicStore } from "../store/topics.ts";
import type { TopicEntry } from "./topic-table.ts";
export interface BreakerDeps {
    readonly topics: TopicStore;
    readonly owner: string;
    readonly clock: Clock;
    readonly events: Events;
    readonly entry: (name: string) => TopicEntry | undefined;
    /** Something changed that the next plan should see. */
    readonly changed: () => void;
    /** Keeps a call that nobody waits for from being lost at a stop. */
    readonly track: (call: Promise<unknown>) => void;
}
export declare function cooldownMs(trips: number): number;
export declare class Breaker {
    #private;
    constructor(name: string, deps: BreakerDeps);
    /** `one`: only the probe. */
    admits(nowMs: number): "all" | "one" | "none";
    /** Proof that the receiver lives: delivered, or an answer about the message itself. */
    proved(): void;
    /** `startedMs`: when the attempt began; one from before the probe says nothing about the probe. */
    failed(id: string, startedMs: number, nowMs: number, reason: string): void;
    /** Asks for the probe when the cool-down is over. Returns how long until it may be asked for; Infinity: not open. */
    seekProbe(nowMs: number): number;
}
