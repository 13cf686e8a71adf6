/**
 * SETTLE in Redis: settlements as the arguments of their script, in pieces that Redis runs quickly.
 */
import { LIMITS } from "../../message/limits.ts";
import type { Settle, Settlement } from "../../message/settlement.ts";
import type { At, SettleResult } from "../store.ts";
import type { Db } from "./db.ts";
import { SETTLE } from "./scripts/settle.ts";

const PIECE = LIMITS.batchMessagesMax;

/** `told` hears which lanes have new work. */
export function createSettle(
  db: Db,
  told: (lanes: readonly string[]) => void,
): (settles: readonly Settle[], at?: At) => Promise<SettleResult[]> {
  return async (settles, at) => {
    db.port();
    const results: SettleResult[] = [];
    for (let from = 0; from < settles.length; from += PIECE) {
      const piece = settles.slice(from, from + PIECE);
      const { key, lease, message } = db.keys;
      const leases = new Set(piece.map(({ claim }) => claim.lease));
      const keys = [...["leased", "lanes", "settled", "waiters"].map(key), ...[...leases].map(lease)];
      keys.push(...piece.map(({ id }) => message(id)));
      const [done, lanes] = (await db.run(SETTLE, keys, piece.flatMap(argsOf), at)) as [number[], string[]];
      results.push(...done.map((one): SettleResult => (one === 1 ? "settled" : "lost")));
      if (lanes.length > 0) told(lanes);
    }
    return results;
  };
}

function argsOf({ id, claim, attempt, durationMs, settlement }: Settle): (string | number)[] {
  const duration = durationMs === null ? "" : durationMs;
  return [id, claim.lease, claim.token, attempt, duration, settlement.kind, ...how(settlement)];
}

/** Delay, counted, suspicion, blocks, outcome, detail, reason. */
function how(settlement: Settlement): (string | number)[] {
  if (settlement.kind === "delivered") return ["", 1, "", 0, settlement.outcome, "", ""];
  if (settlement.kind === "release") return ["", 0, "", 0, "", "", ""];
  const detail = JSON.stringify([settlement.code, settlement.error]);
  const { outcome } = settlement;
  switch (settlement.kind) {
    case "retry":
      return [settlement.delayMs, settlement.counted ? 1 : 0, settlement.suspicion, 0, outcome, detail, ""];
    case "hold":
      return ["", settlement.counted ? 1 : 0, "", 0, outcome, detail, settlement.reason];
    case "dead":
      return ["", 1, "", settlement.blocksOrder ? 1 : 0, outcome, detail, ""];
  }
}
