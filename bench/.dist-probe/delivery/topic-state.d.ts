/**
 * What one worker knows of a topic beside its record: how much of it is held here, how fast its sink answers, and from
 * that how many more messages it may have. A topic with a slow sink leaves slots to the others, always.
 */
import type { Breaker } from "./breaker.ts";
import type { PlanTenant, PlanTopic } from "./plan.ts";
import type { TopicEntry } from "./topic-table.ts";
export interface TenantState extends PlanTenant {
    held: number;
    /** Lanes that count towards it; with none, and nothing held, it may be forgotten. */
    lanes: number;
}
export interface TopicState extends PlanTopic {
    readonly breaker: Breaker;
    /** Null: the store does not know it (any more). */
    entry: TopicEntry | null;
    /** Whether this worker's patterns choose it. */
    readonly chosen: boolean;
    readonly tenants: Map<string | null, TenantState>;
    leaseMs: number;
    held: number;
    allowance: number;
    tenantLimit: number | null;
    /** A moving average of attempts' durations; NaN before the first. */
    paceMs: number;
    slow: boolean;
}
export declare function createTopicState(name: string, chosen: boolean, breaker: Breaker): TopicState;
export declare function tenantOf(topic: TopicState, tenantId: string | null): TenantState;
export declare function paced(topic: TopicState, durationMs: number): void;
/** Attempts that have not answered yet say as much as those that have. */
export declare function stillRunning(topic: TopicState, forMs: number): void;
/** Whether anything of the topic may be attempted here now. */
export declare function isOpen(topic: TopicState, nowMs: number): boolean;
export interface Crowd {
    readonly concurrency: number;
    /** Held over all slow topics. */
    readonly slowHeld: number;
    /** How many slow topics ask in this round. */
    readonly slowAsking: number;
    /** How many topics are served here. */
    readonly served: number;
}
/** How many more messages a topic may have, before tenants and capacity are looked at. */
export declare function allowanceOf(topic: TopicState, hasSink: boolean, nowMs: number, crowd: Crowd): number;
