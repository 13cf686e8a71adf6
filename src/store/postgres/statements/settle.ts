/**
 * SETTLE: writes outcomes under their leases' tokens (I4), one attempt row for each (I5), and what follows from it: a new ready
 * row, a hold, or a dead letter, all in one statement. A whole batch that was delivered needs only its lease and token.
 */
import { LIMITS } from "../../../message/limits.ts";
import type { Settle } from "../../../message/settlement.ts";
import { perClock } from "../../shared/clock-sql.ts";
import type { At, SettleResult } from "../../store.ts";
import { type Db, OUTCOME_CODES } from "../db.ts";
import { KIND_ORDERED, type LaneInfo } from "../lane-table.ts";
import type { MessageFacts, OpenLeases } from "../open-leases.ts";
import { isUniqueViolation } from "../sql-errors.ts";
import { createSettlePart } from "./settle-part.ts";

/**
 * Everything in these leases was delivered: $1 leases, $2 tokens, $3 durations of all, in the order of the leases' ids, or null.
 * `again`: a part of them was settled under the same token before; says which of the rest are settled now.
 */
export const wholeSql = (s: string, again: boolean) =>
  perClock(
    (clock) => `with l as (
      delete from ${s}.lease l using unnest($1::bigint[], $2::uuid[], $3::text[]) x(id, token, ms) where l.id = x.id and l.token = x.token
      returning l.id, l.ids, l.attempts, x.ms),
    a as (insert into ${s}.attempt (message_id, lease_id, n, outcome, at, duration_ms)
      select u.id, l.id, u.n, 1, ${clock}, coalesce(u.ms, 0)
      from l cross join lateral unnest(l.ids, l.attempts, string_to_array(l.ms, ',')::int[]) u(id, n, ms)
      ${again ? "on conflict do nothing returning message_id, lease_id" : ""})
    select l.id::text, ${again ? "coalesce((select string_agg(a.message_id::text, ',') from a where a.lease_id = l.id), '')" : "null"} from l`,
  );

/** kind in the parameters below. */
const KINDS = { delivered: 1, retry: 2, dead: 3, hold: 4, release: 5 } as const;

/**
 * A released message goes back among those that waited as long: as the newest it would hide those that came after it from a probe. When it
 * became due is not known any more; when it was made is, by its id.
 */
const backInPlace = (clock: string) =>
  `least(${clock}, to_timestamp(('x' || left(replace(x.id::text, '-', ''), 12))::bit(48)::bigint / 1000.0))`;

/**
 * Any mixture. $1 leases, $2 tokens, $3 whether the lease ends with this call; then per message: $4 id, $5 which of these, from 1, $6 kind,
 * $7 attempt, $8 outcome, $9 counted, $10 delay ms, $11 lane it goes back to, $12 base, $13 ordered, $14 suspicion, $15 blocks order,
 * $16 duration, $17 code, $18 error, $19 hold reason, $20 bytes of its payload or null, $21 failed. The lock on the lease row keeps a reclaim out; the order by id keeps two settles
 * from meeting in a deadlock. Where a row count is only known here, conditions are written so that they are hashed, not joined in a loop.
 */
const mixedSql = (s: string) =>
  perClock(
    (clock) => `with
    l as materialized (
      select l.id, l.suspicion, y.ends, y.g from ${s}.lease l join unnest($1::bigint[], $2::uuid[], $3::boolean[]) with ordinality y(id, token, ends, g)
        on y.id = l.id and y.token = l.token order by l.id for no key update of l),
    x as materialized (
      select x.*, l.id as lease_id, l.suspicion as leased,
        case x.kind when 4 then 'infinity'::timestamptz when 2 then ${clock} + x.delay_ms * interval '1 ms' when 5 then ${backInPlace(clock)} end as again
      from l join unnest($4::uuid[], $5::int[], $6::smallint[], $7::smallint[], $8::smallint[], $9::boolean[], $10::bigint[], $11::int[], $12::smallint[],
        $13::boolean[], $14::smallint[], $15::boolean[], $16::int[], $17::text[], $18::text[], $19::text[], $20::int[], $21::boolean[])
        x(id, g, kind, n, outcome, counted, delay_ms, lane_id, base, ordered, suspicion, blocks, ms, code, error, reason, bytes, failed) on x.g = l.g),
    a as (insert into ${s}.attempt (message_id, lease_id, n, outcome, counted, at, duration_ms, next_due, code, error)
      select id, lease_id, n, outcome, counted, ${clock}, ms, case when kind = 2 then again end, code, error from x where kind <> 5
      on conflict do nothing returning message_id),
    z as materialized (
      select x.*, case when counted then n else n - 1 end as attempts from x where kind <> 5 and coalesce(id in (select message_id from a), false)
      union all
      select x.*, n - 1 from x where kind = 5 and not exists (select from ${s}.attempt p where p.message_id = x.id and p.lease_id = x.lease_id)),
    f as (delete from ${s}.order_lock k using z where z.ordered and k.id = z.id and not (z.kind = 3 and z.blocks) returning k.lane_id, k.ordering_key, k.id, coalesce(k.seq, 0) as seq, k.failed),
    ro as (insert into ${s}.ready_ordered (lane_id, ordering_key, id, seq, due, attempts, base, suspicion, failed)
      select f.lane_id, f.ordering_key, z.id, f.seq, z.again, z.attempts, z.base, case when z.kind in (4, 5) then z.leased else z.suspicion end, f.failed or z.failed from z join f on f.id = z.id where z.ordered and z.kind in (2, 4, 5)),
    r as (insert into ${s}.ready (due, id, lane_id, attempts, base, bytes)
      select again, id, lane_id, attempts, base, bytes from z where kind in (2, 4, 5) and not ordered),
    h as (insert into ${s}.held (id, reason, at) select id, reason, ${clock} from z where kind = 4
      on conflict (id) do update set reason = excluded.reason, at = excluded.at),
    d as (insert into ${s}.dead_letter (id, lane_id, attempts, died_at, code, error, seq)
      select id, lane_id, attempts, ${clock}, code, error, case when ordered then (select k.seq from ${s}.order_lock k where k.id = z.id) end from z where kind = 3
      on conflict (id) do update set resolution = 0, seq = excluded.seq, attempts = excluded.attempts, died_at = excluded.died_at, died_xid = excluded.died_xid, settled_at = null,
        code = excluded.code, error = excluded.error, revision = dead_letter.revision + 1),
    e as (delete from ${s}.lease using l where lease.id = l.id and l.ends),
    u as (update ${s}.lease t set
        ids = array(select v.id from unnest(t.ids) with ordinality v(id, o) where v.id <> all (q.gone) order by o),
        attempts = array(select v.n from unnest(t.ids, t.attempts) with ordinality v(id, n, o) where v.id <> all (q.gone) order by o),
        bases = array(select v.n from unnest(t.ids, t.bases) with ordinality v(id, n, o) where v.id <> all (q.gone) order by o),
        lanes = array(select v.n from unnest(t.ids, t.lanes) with ordinality v(id, n, o) where v.id <> all (q.gone) order by o)
      from (select lease_id, array_agg(id) as gone from z where kind = 5 group by lease_id) q join l on l.id = q.lease_id and not l.ends
      where t.id = q.lease_id)
    select z.id::text, z.g::text, case when z.ordered then (select f.lane_id::text from f where f.id = z.id) end from z`,
  );

/** `onWork` hears of lanes where something became claimable: a released message, a freed ordering key. */
export function createSettle(
  db: Db,
  open: OpenLeases,
  onWork: (lanes: Iterable<string>) => void,
): (settles: readonly Settle[], at?: At) => Promise<SettleResult[]> {
  const whole = wholeSql(db.s, false);
  const wholeAgain = wholeSql(db.s, true);
  const mixed = mixedSql(db.s);
  const settlePart = createSettlePart(db, open);

  /** Per lease that was still ours: null when all of it is settled now, else the ids that are (the rest was settled before). */
  async function settleWhole(groups: readonly Settle[][], now: Date | undefined): Promise<Map<string, string | null>> {
    const claims = groups.map((group) => (group[0] as Settle).claim);
    const durations = groups.map((group) => open.durations(group));
    const values = [claims.map((c) => c.lease), claims.map((c) => c.token), durations];
    const name = now === undefined ? "mg_settle_whole" : undefined;
    const rows = await db.connection.rows("settle", whole(now), values, { name }).catch((thrown: unknown) => {
      if (!isUniqueViolation(thrown)) throw thrown;
      return db.connection.rows("settle", wholeAgain(now), values);
    });
    return new Map(rows.map((row) => [row[0] as string, row[1] as string | null]));
  }

  async function settleMixed(groups: readonly Settle[][], now: Date | undefined): Promise<Set<string>> {
    const claims = groups.map((group) => (group[0] as Settle).claim);
    const ends = groups.map((group) => open.endsWith(group));
    const values = [claims.map((c) => c.lease), claims.map((c) => c.token), ends, ...(await mixedValues(db, open, groups))];
    const rows = await db.connection.rows("settle", mixed(now), values);
    const freed = new Set(rows.flatMap((row) => (row[2] ? [row[2]] : [])));
    if (freed.size > 0) onWork(freed);
    return new Set(rows.map((row) => `${row[0]} ${row[1]}`));
  }

  return async function settle(settles, at) {
    const wholes: Settle[][] = [];
    const rest: Settle[][] = [];
    for (const group of open.group(settles).values()) {
      if (open.isWholeAndPlain(group)) wholes.push(group);
      else rest.push(group);
    }
    const doneLeases = wholes.length > 0 ? await settleWhole(wholes, at?.now) : new Map<string, string | null>();
    const ours = rest.length > 0 ? await knownOnly(db, open, rest) : [];
    const settled = new Set<Settle>();
    for (const group of wholes) {
      const ids = doneLeases.get((group[0] as Settle).claim.lease);
      if (ids !== undefined) for (const one of group) if (ids === null || ids.includes(one.id)) settled.add(one);
    }
    for (const plain of [true, false]) {
      const groups = ours.filter((group) => open.isPlain(group) === plain);
      if (groups.length === 0) continue;
      const done = await (plain ? settlePart : settleMixed)(groups, at?.now);
      for (const [g, group] of groups.entries()) for (const one of group) if (done.has(`${one.id} ${g + 1}`)) settled.add(one);
    }
    open.settled(settles);
    return settles.map((one) => (settled.has(one) ? "settled" : "lost"));
  };
}

/** A message that comes twice under one claim: the first counts. */
function onceEach(group: readonly Settle[]): Settle[] {
  return [...new Map([...group].reverse().map((one) => [one.id, one])).values()].reverse();
}

/**
 * What may be settled at all: members of the leases they name, each once. A lease that another instance claimed is read first;
 * one that is gone or has another token was lost.
 */
async function knownOnly(db: Db, open: OpenLeases, groups: readonly Settle[][]): Promise<Settle[][]> {
  const foreign = groups.map((group) => (group[0] as Settle).claim).filter((claim) => !open.knows(claim));
  if (foreign.length > 0) {
    const text = `select l.id::text, l.token::text, array_to_string(l.ids, ','), array_to_string(l.lanes, ','), array_to_string(l.bases, ',')
      from ${db.s}.lease l join unnest($1::bigint[], $2::uuid[]) x(id, token) on l.id = x.id and l.token = x.token`;
    const values = [foreign.map((c) => c.lease), foreign.map((c) => c.token)];
    for (const [lease, token, ids, lanes, bases] of await db.connection.rows("settle", text, values, { reads: true })) {
      open.learn({ lease: lease as string, token: token as string }, list(ids), list(lanes).map(Number), list(bases).map(Number));
    }
  }
  return groups
    .map((group) => onceEach(group).filter((one) => open.factsOf(one) !== undefined))
    .filter((group) => group.length > 0);
}

const list = (text: string | null | undefined): string[] => (text ? text.split(",") : []);

/** The columns $4…$21 of the mixed statement. */
async function mixedValues(db: Db, open: OpenLeases, groups: readonly Settle[][]): Promise<unknown[]> {
  const columns: unknown[][] = Array.from({ length: 18 }, () => []);
  const all = groups.flatMap((group, g) => group.map((one) => ({ one, g: g + 1, facts: open.factsOf(one) as MessageFacts })));
  const lanes = await db.lanes.byId(all.map(({ facts }) => facts.lane));
  const back = await lanesBack(
    db,
    all.map(({ one, facts }) => ({ one, lane: lanes.get(facts.lane) as LaneInfo })),
  );
  for (const { one, g, facts } of all) {
    const { id, attempt, durationMs, settlement } = one;
    const lane = lanes.get(facts.lane) as LaneInfo;
    const failed = settlement.kind === "retry" || settlement.kind === "dead" || settlement.kind === "hold";
    const row: unknown[] = [
      id,
      g,
      KINDS[settlement.kind],
      attempt,
      OUTCOME_CODES[settlement.kind === "release" ? "interrupted" : settlement.outcome],
      settlement.kind === "retry" || settlement.kind === "hold" ? settlement.counted : true,
      settlement.kind === "retry" ? settlement.delayMs : 0,
      (back.get(one) ?? lane).id,
      facts.base,
      lane.kind === KIND_ORDERED,
      settlement.kind === "retry" ? settlement.suspicion : 0,
      settlement.kind === "dead" && settlement.blocksOrder,
      durationMs === null ? null : Math.round(durationMs),
      failed ? storable(settlement.code) : null,
      failed ? storable(settlement.error) : null,
      settlement.kind === "hold" ? storable(settlement.reason) : null,
      facts.bytes,
      settlement.kind === "retry" && settlement.retried === true,
    ];
    row.forEach((value, i) => {
      columns[i]?.push(value);
    });
  }
  return columns;
}

/** Where suspects and those that failed wait is made before they are sent there. */
async function lanesBack(db: Db, all: readonly { one: Settle; lane: LaneInfo }[]): Promise<Map<Settle, LaneInfo>> {
  const retries = all.flatMap(({ one, lane }) =>
    one.settlement.kind === "retry"
      ? [{ one, lane, suspicion: one.settlement.suspicion, retried: one.settlement.retried === true }]
      : [],
  );
  const siblings = await db.lanes.siblings(retries);
  return new Map(retries.map(({ one }, i) => [one, siblings[i] as LaneInfo]));
}

/** What a receiver said must never keep an outcome from being written: no NUL, no half characters, bounded (DO-17). */
function storable(text: string | null): string | null {
  if (text === null) return null;
  const whole = Buffer.from(text.slice(0, LIMITS.errorBytesMax).replaceAll("\u0000", "\ufffd"), "utf8");
  return whole.length <= LIMITS.errorBytesMax
    ? whole.toString("utf8")
    : whole
        .subarray(0, LIMITS.errorBytesMax)
        .toString("utf8")
        .replace(/\ufffd$/, "");
}
