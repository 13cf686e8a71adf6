/**
 * EXTEND: pushes lease ends out, one row per lease. A stale token changes nothing (I4).
 */
import type { Claim } from "../../../message/message.ts";
import type { At } from "../../store.ts";
import type { Db } from "../db.ts";
export declare function createExtend(db: Db): (claims: readonly Claim[], leaseMs: number, at?: At) => Promise<("extended" | "lost")[]>;
