/**
 * Counting in what was accepted, until nothing is left that was there when it began. Amounts are read and added here, because Lua's numbers would round them.
 */

import { moneyOf } from "../../shared/money.ts";
import { addedAmounts } from "../../shared/sums.ts";
import type { Db } from "../db.ts";
import { COUNT, COUNT_LATE } from "./count-scripts.ts";
import type { Seen } from "./found.ts";

/** Redis does nothing else while a script runs. */
const PIECE = 500;

type Entry = readonly [
  topic: string,
  tenant: string,
  hour: string,
  field: string,
  sum: string,
  ids: string[],
  payloads: string[],
];
type Reply = readonly ["done", number, number] | readonly ["again"] | readonly ["priced", string, ...Entry[]];

const keysOf = (db: Db): string[] => ["intake", "books"].map(db.keys.key);

/** For each entry with money the sum of its bucket, and what each id has. */
function priced(entries: readonly Entry[]): string[] {
  const sums = new Map<string, string>();
  const seen = new Set<string>();
  return entries.flatMap(([topic, tenant, hour, field, before, ids, payloads]) => {
    if (field === "") return [];
    const bucket = JSON.stringify([topic, tenant, hour]);
    let sum = sums.get(bucket) ?? before;
    const amounts = ids.map((id, i) => {
      const money = seen.has(id) ? "" : moneyOf(payloads[i] as string, field);
      seen.add(id);
      sum = money === "" ? sum : addedAmounts(sum, money);
      return money;
    });
    sums.set(bucket, sum);
    return [sum, ...amounts];
  });
}

/** One piece: how many entries are left, and how many were taken. */
async function countSome(db: Db): Promise<{ left: number; taken: number }> {
  for (;;) {
    let reply = (await db.run(COUNT, keysOf(db), [PIECE, ""])) as Reply;
    if (reply[0] === "priced") {
      const [, turn, ...entries] = reply;
      reply = (await db.run(COUNT, keysOf(db), [PIECE, turn, entries.length, ...priced(entries)])) as Reply;
    }
    if (reply[0] === "done") return { left: reply[1], taken: reply[2] };
  }
}

/** Until all that was there at the beginning is counted: what comes meanwhile is for the next time. */
export async function countIn(db: Db, signal?: AbortSignal): Promise<void> {
  const intake = db.keys.key("intake");
  const waiting = Number(await db.command("count in", intake, ["LLEN", intake]));
  for (let counted = 0; signal?.aborted !== true; ) {
    const { left, taken } = await countSome(db);
    counted += taken;
    if (left === 0 || counted >= waiting) return;
  }
}

/** Ids that were met and are not counted: how many of the version before are counted now; the others nothing accepted. */
export async function countLate(db: Db, ids: readonly string[]): Promise<{ late: number; others: Seen[] }> {
  await countIn(db);
  const found = { late: 0, others: [] as Seen[] };
  for (let from = 0; from < ids.length; from += PIECE) {
    const some = ids.slice(from, from + PIECE);
    const [late, rows] = (await db.run(COUNT_LATE, [db.keys.key("intake")], some)) as [number, string[][]];
    found.late += late;
    for (const [id = "", topic = null, tenantId = null, made] of rows)
      found.others.push({ kind: "more_than_accepted", id, topic, tenantId, hour: hourOf(Number(made)) });
    if (late > 0) await countIn(db);
  }
  return found;
}

const HOUR_MS = 3_600_000;
export const hourOf = (ms: number): Date => new Date(Math.floor(ms / HOUR_MS) * HOUR_MS);
