import type { Settle } from "../../../message/settlement.ts";
import type { At, SettleResult } from "../../store.ts";
import { type Db } from "../db.ts";
import type { OpenLeases } from "../open-leases.ts";
/** `told` hears of lanes where something became claimable: a released message, a freed ordering key. */
export declare function createSettle(db: Db, open: OpenLeases, told: (lanes: Iterable<string>) => void): (settles: readonly Settle[], at?: At) => Promise<SettleResult[]>;
