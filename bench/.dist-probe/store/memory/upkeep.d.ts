/**
 * Retention and leadership. Only what is settled and past its time is deleted (I2); leadership saves work and never
 * provides safety (I9).
 */
import type { At, Leadership, PruneRequest } from "../store.ts";
import { type State } from "./state.ts";
export declare function prune(state: State, request: PruneRequest): number;
export declare function lead(state: State, name: string, owner: string, ttlMs: number, at?: At): Leadership;
