/**
 * A round over ids, a range at a time, in whichever pieces the time allows: what it finds, and what it has added up of each bucket.
 */

import { moneyOf } from "../../shared/money.ts";
import type { Db } from "../db.ts";
import { countLate, hourOf } from "./count.ts";
import { Findings, type Seen } from "./found.ts";
import { WALK } from "./walk-script.ts";

/** Modulo this, sums of hashes are exact in Lua. */
const WRAP = 4_503_599_627_370_496;
export const plus = (a: number, b: number): number => (((a + b) % WRAP) + WRAP) % WRAP;

export interface Sums {
  n: number;
  hash: number;
  body: number;
}

/** `live`: what is open, and what waits, is claimed or is dead. `all`: everything that is here, payloads added up. */
export type Reach = "live" | "all";

export interface Round {
  readonly reach: Reach;
  after: string;
  readonly upto: string;
  readonly found: Findings;
  /** Settled and gone: of which bucket only their ids and the sums of buckets can tell. */
  readonly lost: Seen[];
  readonly here: Map<string, Sums>;
  readonly open: Map<string, Sums>;
  /** How many were counted late. */
  late: number;
  done: boolean;
}

export const newRound = (reach: Reach, range: { after: string; upto: string } = { after: "", upto: "" }): Round => ({
  ...{ reach, ...range, found: new Findings(), lost: [], here: new Map(), open: new Map(), late: 0, done: false },
});

const LOST_MAX = 10_000;
const LETTERS: Readonly<Record<Reach, string>> = { live: "pio", all: "piodrx" };

type Row = [kind: string, id: string, topic: string, tenant: string, hour: string, money: string, payload: string];
type Summed = [number: string, n: number, hash: string, body: string];
type Reply = [to: string, found: Row[], uncounted: string[], here: Summed[], open: Summed[], looked: number];

function addUp(sums: Map<string, Sums>, rows: readonly Summed[]): void {
  for (const [number, n, hash, body] of rows) {
    const { n: before, hash: ids, body: bodies } = sums.get(number) ?? { n: 0, hash: 0, body: 0 };
    sums.set(number, { n: before + n, hash: plus(ids, Number(hash)), body: plus(bodies, Number(body)) });
  }
}

/** A payload that changed may be money that changed; `field` says where a topic has it. */
function seenOf([kind, id, topic, tenantId, hour, money, payload]: Row, field: string | undefined): Seen {
  const priced = kind === "payload_changed" && money !== "" && field !== undefined && moneyOf(payload, field) !== money;
  const of = { topic: topic || null, tenantId, hour: hour === "" ? null : hourOf(Number(hour) * 1_000) };
  return { kind: priced ? "money_changed" : kind, id, ...of };
}

/** One range of about `size` ids; how many it looked at. */
export async function walkSome(
  db: Db,
  round: Round,
  size: number,
  fieldOf: (topic: string) => string | undefined,
): Promise<number> {
  const args = [round.after, round.upto, size, LETTERS[round.reach], round.reach === "all" ? 1 : 0];
  const [to, rows, uncounted, here, open, looked] = (await db.run(WALK, [db.keys.key("books")], args)) as Reply;
  for (const row of rows) {
    const seen = seenOf(row, fieldOf(row[2]));
    if (seen.kind !== "message_gone" || seen.hour !== null) round.found.add(seen);
    else if (round.lost.length < LOST_MAX) round.lost.push(seen);
  }
  addUp(round.here, here);
  addUp(round.open, open);
  if (uncounted.length > 0) {
    const { late, others } = await countLate(db, uncounted);
    for (const seen of others) round.found.add(seen);
    round.late += late;
  }
  round.after = to;
  round.done = to === "";
  return looked;
}
