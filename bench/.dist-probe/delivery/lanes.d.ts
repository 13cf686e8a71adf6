/**
 * The lanes as this worker knows them: when each is due, whether the last claim emptied it, and how much it usually has.
 * What lanes() said is corrected by hints, claims and our own settles in between, so that a message that is announced
 * is claimed without asking first.
 */
import type { Lane } from "../store/store.ts";
import type { PlanLane } from "./plan.ts";
import { type TenantState, type TopicState } from "./topic-state.ts";
export interface LaneEntry extends PlanLane {
    readonly topic: TopicState;
    readonly tenant: TenantState;
    dueMs: number;
    /** A later moment at which something is known to be due, for when nothing is due now after all. */
    laterMs: number;
    servedMs: number;
    appetite: number;
    /** Messages asked for by claims under way. */
    asked: number;
    /** The last claim brought all it asked for: a second one may overlap. */
    full: boolean;
    readonly tenantId: string | null;
    /** The table's count of hints when this lane last had one: a claim or a look that began before it must not overrule it. */
    hintedAt: number;
    /** Counts a claim's messages while it is being taken in. */
    got: number;
}
type LaneIdentity = Pick<Lane, "lane" | "tenantId" | "priority" | "suspicion">;
/** Something of the lane is due then; what was known to be due later is not forgotten. */
export declare function dueAt(entry: LaneEntry, dueMs: number): void;
export declare class LaneTable {
    #private;
    constructor(topicOf: (name: string) => TopicState);
    get(lane: string): LaneEntry | undefined;
    /** A hint: there may be work now. False when the lane is not known here and has to be looked up. */
    hint(lane: string, nowMs: number): boolean;
    of(known: LaneIdentity, topicName: string): LaneEntry;
    /** Where the hints stand, taken before the store is asked: what is hinted at later is newer than its answer. */
    get mark(): number;
    /** What lanes() answered: the whole truth of that moment, except for lanes hinted at since it was asked. */
    seen(lanes: readonly Lane[], nowMs: number, mark: number): void;
    /** What a claim brought from a lane; `bounded`: the byte limit may have cut it short. `mark`: from before the claim. */
    claimed(entry: LaneEntry, asked: number, got: number, bounded: boolean, mark: number): void;
    /** Those that may be claimed from now. */
    ready(nowMs: number): LaneEntry[];
    /** When the next one that is not due yet will be; Infinity when none is known. */
    nextDueMs(nowMs: number): number;
}
export {};
