import type { Intervention, InterventionResult } from "../../store.ts";
import { type Db } from "../db.ts";
import type { createReads } from "./read.ts";
export declare function createIntervene(db: Db, reads: ReturnType<typeof createReads>, told: (lanes: Iterable<string>) => void): (intervention: Intervention) => Promise<InterventionResult>;
