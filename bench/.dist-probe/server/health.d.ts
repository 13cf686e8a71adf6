/**
 * Whether this process lives, can accept, and how everything stands. None of it waits for a store that hangs: /health
 * answers within a tenth of a second with what was last known and says how old that is.
 */
import type { TopicRecord } from "../message/topic.ts";
import type { StatusCount } from "../store/store.ts";
import type { Kernel } from "./kernel.ts";
import { type Answer } from "./last-answer.ts";
export interface Levels {
    /** Pending, processing and dead: the delivered are not read from the store, that would be all of them. */
    readonly counts: readonly StatusCount[];
    readonly topics: readonly TopicRecord[];
}
export interface ReadyCheck {
    readonly name: string;
    readonly ok: boolean;
    readonly detail: string | null;
}
export interface HealthJson {
    readonly status: "healthy" | "degraded" | "unhealthy";
    readonly reasons: readonly string[];
    readonly [member: string]: unknown;
}
export interface Health {
    ready(): Promise<ReadyCheck[]>;
    summary(): Promise<HealthJson>;
    /** Counts and topics, at most a few seconds old; the last known ones when the store does not answer within `waitMs`. */
    levels(waitMs: number): Promise<Answer<Levels>>;
    /** Topic → how many this process has delivered since it started. */
    readonly delivered: ReadonlyMap<string, number>;
}
export declare function createHealth(kernel: Kernel): Health;
