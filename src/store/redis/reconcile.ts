/**
 * The walk of the reconciliation: a bounded step with each upkeep, over every set and then over every message, round and round.
 */
import type { Db } from "./db.ts";
import { RECONCILE_MESSAGES, RECONCILE_SET } from "./scripts/reconcile.ts";

/** Redis does nothing else while a script runs. */
const PIECE = 200;
const SETS_PER_STEP = 20;

export interface Reconcile {
  /** Goes on where the step before stopped. Returns how many were mended. */
  step(): Promise<number>;
  /** Steps until everything was looked at. */
  all(): Promise<number>;
}

/** `dryRun`: only counts what it would mend. */
export function createReconcile(db: Db, dryRun = false): Reconcile {
  const looks = dryRun ? 1 : 0;
  let sets: { readonly state: string; readonly topic: string }[] = [];
  let after = "";
  let cursor = "0";

  async function overSets(): Promise<number> {
    let mended = 0;
    for (let step = 0; step < SETS_PER_STEP && sets.length > 0; step++) {
      const { state, topic } = sets[0] as (typeof sets)[number];
      const keys = [db.keys.key(`s:${state}:${topic}`), db.keys.key("lanes"), db.keys.key("quarantine")];
      const [reached, count] = (await db.run(RECONCILE_SET, keys, [state, topic, after, PIECE, looks])) as [string, number];
      mended += count;
      after = reached;
      if (reached === "") sets.shift();
    }
    return mended;
  }

  async function step(): Promise<number> {
    const args = [cursor, PIECE, looks];
    const [next, found] = (await db.run(RECONCILE_MESSAGES, [db.keys.key("accepted")], args)) as [string, number];
    cursor = next;
    if (sets.length === 0) {
      const accepted = db.keys.key("accepted");
      const topics = (await db.command("read topics", accepted, ["HKEYS", accepted])) as string[];
      sets = topics.flatMap((topic) => ["p", "i", "o"].map((state) => ({ state, topic })));
      after = "";
    }
    return found + (await overSets());
  }

  return {
    step,
    async all() {
      let mended = 0;
      do mended += await step();
      while (cursor !== "0" || sets.length > 0);
      return mended;
    },
  };
}
