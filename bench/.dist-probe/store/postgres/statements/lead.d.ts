/**
 * LEAD: a named leadership as a lease row with a term. It saves work and never provides safety (I9): what a leader does must be
 * safe when two do it.
 */
import type { At, Leadership } from "../../store.ts";
import type { Db } from "../db.ts";
export declare function createLead(db: Db): (name: string, owner: string, ttlMs: number, at?: At) => Promise<Leadership>;
