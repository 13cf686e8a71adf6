/**
 * What must hold after every fault, checked from three sides: what the callers were told (ok or unknown), what the receiver
 * got, and what the tables say. The letters are the invariants of the fault table: L, G, A, S, B, C.
 */
import pg from "pg";
import { isRecoveryTopic, RECOVERY_NAMESPACE } from "../../src/recovery/topics.ts";
import type { Store } from "../../src/store/store.ts";
import { type Arrival, sha256 } from "./receiver.ts";

interface Sent {
  readonly sha256: string;
  /** `unknown`: the answer was lost, so the message may be there or not, but whole. */
  outcome: "ok" | "unknown";
}

/** Messages by what a receiver knows them by: the key, else the id. */
export class History {
  readonly #sent = new Map<string, Sent>();

  ok(name: string, payload: string): void {
    this.#sent.set(name, { sha256: sha256(payload), outcome: "ok" });
  }

  unknown(name: string, payload: string): void {
    if (!this.#sent.has(name)) this.#sent.set(name, { sha256: sha256(payload), outcome: "unknown" });
  }

  get(name: string): Sent | undefined {
    return this.#sent.get(name);
  }

  names(outcome: Sent["outcome"]): string[] {
    return [...this.#sent].filter(([, sent]) => sent.outcome === outcome).map(([name]) => name);
  }

  get size(): number {
    return this.#sent.size;
  }
}

export interface CheckOptions {
  readonly url: string;
  readonly schema: string;
  readonly history: History;
  /** Absent: the handlers were functions that keep no record. */
  readonly arrivals?: readonly Arrival[];
  readonly attemptsMax?: number;
  readonly store?: Store;
  /** Names that must have ended as dead letters; every other one must have been delivered. */
  readonly dead?: readonly string[];
}

interface Row {
  readonly id: string;
  readonly name: string;
  readonly sha: string;
  readonly delivered: number;
  readonly counted: number;
  readonly dead: number;
  readonly pending: number;
  readonly leased: number;
}

const rowsSql = (s: string) => `
  with held as (select u.id, l.id as lease_id from ${s}.lease l cross join lateral unnest(l.ids) u(id)
    where not exists (select from ${s}.attempt a where a.message_id = u.id and a.lease_id = l.id)),
  leased as (select id, count(*)::int as n from held group by id),
  tried as (select message_id as id, (count(*) filter (where outcome in (1, 2)))::int as delivered, (count(*) filter (where counted))::int as counted
    from ${s}.attempt group by message_id),
  waiting as (select id, count(*)::int as n from (select id from ${s}.ready union all select id from ${s}.ready_ordered) r group by id)
  select m.id::text, coalesce(m.key, m.id::text) as name, encode(sha256(convert_to(m.payload, 'UTF8')), 'hex') as sha,
    coalesce(t.delivered, 0) as delivered, coalesce(t.counted, 0) as counted, (d.id is not null)::int as dead,
    coalesce(w.n, 0) as pending, coalesce(l.n, 0) as leased
  from ${s}.message m left join tried t on t.id = m.id left join waiting w on w.id = m.id left join leased l on l.id = m.id
    left join ${s}.dead_letter d on d.id = m.id and d.resolution < 3
  where m.lane_id not in (select l.id from ${s}.lane l join ${s}.topic o on o.id = l.topic_id where starts_with(o.name, '${RECOVERY_NAMESPACE}'))`;

/** Every violation as one line; none: all is well. At most a few of each kind are shown. */
export async function violations(options: CheckOptions): Promise<string[]> {
  const { history, arrivals, store, attemptsMax = Number.POSITIVE_INFINITY, dead = [] } = options;
  const rows = await readRows(options);
  const found = new Findings();
  const byName = new Map(rows.map((row) => [row.name, row]));
  const mustDie = new Set(dead);

  for (const name of history.names("ok")) if (!byName.has(name)) found.add("L: accepted and not stored", name);
  for (const row of rows) {
    const sent = history.get(row.name);
    const places = row.delivered + row.dead + row.pending + row.leased;
    if (!sent) found.add("G: stored and never sent", row.name);
    else if (sent.sha256 !== row.sha) found.add("B: stored bytes differ", row.name);
    if (row.delivered > 1) found.add("S: settled as delivered more than once", row.name);
    if (places !== 1) found.add("C: not in exactly one place", JSON.stringify(row));
    if (row.counted > attemptsMax) found.add(`A: ${row.counted} attempts counted`, row.name);
    if (mustDie.has(row.name) !== row.dead > 0) found.add("L: wrong end", JSON.stringify(row));
    else if (row.delivered + row.dead === 0) found.add("L: not settled", JSON.stringify(row));
  }
  if (arrivals) checkArrivals(arrivals, byName, history, found);
  if (store) {
    const sum = (await store.counts({ delivered: true }))
      .filter(({ topic }) => !isRecoveryTopic(topic))
      .reduce((total, { count }) => total + count, 0);
    if (sum !== rows.length) found.add("C: counts() and the accepted differ", `${sum} and ${rows.length}`);
  }
  return found.lines();
}

function checkArrivals(arrivals: readonly Arrival[], rows: Map<string, Row>, history: History, found: Findings): void {
  const effects = new Set<string>();
  for (const { key, sha256: sha, id, effect } of arrivals) {
    if (effect) effects.add(key);
    const sent = history.get(key);
    if (!sent) found.add("G: received and never sent", key);
    else if (sent.sha256 !== sha) found.add("B: received bytes differ", key);
    const row = rows.get(key);
    if (!row) found.add("G: received and not stored", key);
    else if (row.id !== id) found.add("S: two messages under one key", key);
  }
  for (const row of rows.values())
    if (row.delivered > 0 && !effects.has(row.name)) found.add("L: delivered without an effect", row.name);
}

async function readRows({ url, schema }: CheckOptions): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(rowsSql(`"${schema}"`))).rows;
  } finally {
    await client.end();
  }
}

/** Where the messages of one ordering key had their effects out of turn. `place` reads key and number from what was sent. */
export function outOfOrder(arrivals: readonly Arrival[], place: (body: string) => { key: string; n: number } | null): string[] {
  const last = new Map<string, number>();
  const found: string[] = [];
  for (const { body, effect } of arrivals) {
    const at = effect ? place(body) : null;
    if (!at) continue;
    const before = last.get(at.key) ?? -1;
    if (at.n < before) found.push(`${at.key}: ${at.n} after ${before}`);
    last.set(at.key, at.n);
  }
  return found;
}

const SHOWN = 5;

class Findings {
  readonly #kinds = new Map<string, string[]>();

  add(kind: string, what: string): void {
    const known = this.#kinds.get(kind);
    if (known) known.push(what);
    else this.#kinds.set(kind, [what]);
  }

  lines(): string[] {
    return [...this.#kinds].map(([kind, all]) => `${kind} (${all.length}): ${all.slice(0, SHOWN).join(", ")}`);
  }
}

/** Seeded, so that a failing run can be repeated: mulberry32. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** The seed of this run: FAULT_SEED repeats an earlier one. Printed, because a failure without its seed is lost. */
export function runSeed(what: string): number {
  const seed = Number(process.env.FAULT_SEED ?? Math.floor(Math.random() * 2 ** 31));
  process.stdout.write(`${what}: FAULT_SEED=${seed}\n`);
  return seed;
}
