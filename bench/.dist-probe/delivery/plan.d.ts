/**
 * Which lanes the next claims name and how much of each: fairness, priority and limits as one pure function. Higher priority
 * goes first and ages; lanes of one level share equally by topic and tenant; a fifth of every round goes to those who
 * were served longest ago, so that none starves; suspects of a lost lease are claimed in small groups of their own.
 */
import type { Suspicion } from "../message/message.ts";
export interface PlanTenant {
    /** Claimed and not finished, and asked for. */
    readonly held: number;
}
export interface PlanTopic {
    readonly name: string;
    readonly leaseMs: number;
    readonly held: number;
    /** How many more it may have now: 0 while it is paused, disabled, held by its breaker or not served here. */
    readonly allowance: number;
    /** Null: half of what the topic may have while other tenants wait. */
    readonly tenantLimit: number | null;
}
export interface PlanLane {
    readonly lane: string;
    readonly topic: PlanTopic;
    readonly tenant: PlanTenant;
    readonly priority: number;
    readonly suspicion: Suspicion;
    /** Monotonic moment its first message is due. */
    readonly dueMs: number;
    /** Monotonic moment it was last named in a claim. */
    readonly servedMs: number;
    /** How many it is likely to have: what is beyond goes first to lanes with more. */
    readonly appetite: number;
}
export interface PlanInput<L extends PlanLane> {
    /** Only lanes that may be claimed from: due, and not already being emptied. */
    readonly lanes: readonly L[];
    readonly nowMs: number;
    /** How many messages this round may ask for. */
    readonly capacity: number;
    /** How many this worker holds at most: what half of it means for a tenant. */
    readonly total: number;
    /** Fractions of a fifth left over from rounds before. */
    readonly carry: number;
    /** Claims of suspects that are not finished. */
    readonly suspectGroups: number;
    readonly suspectSingles: number;
}
export interface PlannedClaim<L> {
    readonly leaseMs: number;
    readonly suspicion: Suspicion;
    readonly lanes: {
        readonly lane: L;
        readonly limit: number;
    }[];
}
export interface Plan<L> {
    readonly claims: PlannedClaim<L>[];
    readonly carry: number;
}
export declare const PLAN: {
    readonly lanesMax: 200;
    readonly agedShare: 0.2;
    readonly suspectGroupSize: 8;
    readonly suspectGroupsMax: 4;
    readonly claimsMax: 4;
};
export declare function plan<L extends PlanLane>(input: PlanInput<L>): Plan<L>;
