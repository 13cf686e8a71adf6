/**
 * Finds leases that ran out (a crash, a stall, a cut network) and decides what becomes of what was in them. The store takes
 * them over under new tokens first, so whoever held them can no longer settle (I4); that also makes two of these at once safe.
 */
import { type DecideRules } from "../../message/decide.ts";
import type { Events } from "../../observe/events.ts";
import type { Random } from "../../platform/random.ts";
import type { Store } from "../../store/store.ts";
import type { MaintenanceJob } from "../job.ts";
export interface ReclaimOptions {
    readonly store: Store;
    readonly owner: string;
    readonly random: Random;
    readonly events: Events;
    readonly rulesOf: (topic: string) => DecideRules;
    readonly everyMs: number;
}
export declare function reclaimExpired({ store, owner, random, events, rulesOf, everyMs }: ReclaimOptions): MaintenanceJob;
