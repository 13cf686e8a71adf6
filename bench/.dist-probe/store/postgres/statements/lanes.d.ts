import type { At, Lane } from "../../store.ts";
import type { Db } from "../db.ts";
export declare function createLanes(db: Db): (at?: At) => Promise<Lane[]>;
