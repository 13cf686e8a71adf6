/**
 * What a worker's first messages would wait for otherwise: a connection (its password is hashed thousands of times), and a plan and the catalogue
 * entries for each of its statements. A worker that finds nothing to do has the time for it.
 */
import type { Clock } from "../../../platform/clock.ts";
import type { Connection, Statement } from "../connection.ts";
import { claimSql } from "./claim.ts";
import { wholeSql } from "./settle.ts";

/** A claim and a settle overlap; what more is needed is opened then. */
const CONNECTIONS = 2;
/** After all that a process asks at its start: of the connections that this leaves behind, those that were used last are used next. */
const AFTER_MS = 500;
const NO_LANE = 0;
const NO_LEASE = 0;
const NIL = "00000000-0000-0000-0000-000000000000";

/** Once for a store, however many workers rest; a failure does not matter. */
export function createWarmUp(connection: Pick<Connection, "warm">, s: string, clock: Clock): () => void {
  let begun = false;
  const claim = [[NO_LANE], [1], ["-infinity"], [NIL], "warm-up", 1_000, 1];
  const statements: Statement[] = [
    { name: "mg_claim_few", text: claimSql(s, true)(undefined), values: claim },
    { name: "mg_settle_whole", text: wholeSql(s, false)(undefined), values: [[NO_LEASE], [NIL], [null]] },
    { name: "mg_claim", text: claimSql(s, false)(undefined), values: claim },
  ];
  return () => {
    if (begun) return;
    begun = true;
    clock.after(AFTER_MS, () => void connection.warm(CONNECTIONS, statements).catch(() => {}), true);
  };
}
