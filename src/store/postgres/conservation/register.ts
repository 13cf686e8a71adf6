/**
 * What was accepted, from the rows that no statement of delivery writes: each message is counted into its bucket exactly once, when the
 * transaction that wrote it is older than every open one. Which those are is told by transaction numbers, not by clocks or ids; the time of
 * creation only says where to look, an hour earlier than it need be.
 */
import { type Ask, type Mark, NO_ID, refuseHalfWay } from "./ledger.ts";
import { judged, makeBuckets, NEXT_XID, xidOf } from "./sums.ts";

const BATCH = 20_000;
/** A statement that lasted this long before it wrote, or a clock that was set back by this much, is still found. */
export const SLACK = "interval '1 hour'";

/** Counts a relation of messages in. `count`: which table each lies in, where days are accounted for. */
export async function countIn(ask: Ask, s: string, rows: string, days: boolean): Promise<{ n: number; last: string | null }> {
  await ask(makeBuckets(s, rows));
  const [row] = await ask(`with m as materialized (select * from ${rows} m),
    r as materialized (${judged(s, "m", days ? ", m.place" : "")}),
    o as (insert into ${s}.conservation_open (id, bucket, hash, body, money)
      select id, bucket, hash, body, money from r where ended = 0 on conflict do nothing),
    u as (update ${s}.conservation_bucket b set accepted_n = b.accepted_n + g.n, accepted_hash = b.accepted_hash + g.hash,
        accepted_body = b.accepted_body + g.body, accepted_money = b.accepted_money + g.money, unpriced_n = b.unpriced_n + g.unpriced,
        delivered_n = b.delivered_n + g.delivered, resolved_n = b.resolved_n + g.resolved, discarded_n = b.discarded_n + g.discarded,
        settled_hash = b.settled_hash + g.settled, sealed = null
      from (select bucket, count(*) as n, sum(hash) as hash, sum(body) as body, coalesce(sum(money), 0) as money,
          count(*) filter (where priced and money is null) as unpriced, count(*) filter (where ended = 1) as delivered,
          count(*) filter (where ended = 2) as resolved, count(*) filter (where ended = 3) as discarded,
          coalesce(sum(hash) filter (where ended > 0), 0) as settled
        from r group by bucket) g where b.id = g.bucket),
    ${
      days
        ? `d as (insert into ${s}.conservation_day as y (name, n, hash)
      select c.relname, g.n, g.hash from (select place, count(*) as n, sum(hash) as hash from r group by place) g
      join pg_class c on c.oid = g.place on conflict (name) do update set gone_at = null,
        n = case when y.gone_at is null then y.n else 0 end + excluded.n, hash = case when y.gone_at is null then y.hash else 0 end + excluded.hash),`
        : ""
    }
    c as (update ${s}.conservation set accepted_n = accepted_n + (select count(*) from r), accepted_hash = accepted_hash + (select coalesce(sum(hash), 0) from r))
    select (select count(*) from m)::text, (select id::text from m order by id desc limit 1)`);
  return { n: Number(row?.[0] ?? 0), last: row?.[1] ?? null };
}

/** Bodies that outlived their day and were there before the first pass: their rows no longer say which transaction wrote them. */
async function countKept(ask: Ask, s: string, mark: Mark): Promise<boolean> {
  const rows = `(select k.* from ${s}.message_kept k where k.id > '${mark.cursor}' and not exists (select from ${s}.message m where m.id = k.id)
    order by k.id limit ${BATCH})`;
  const { n, last } = await countIn(ask, s, rows, false);
  const done = n < BATCH;
  await ask(`update ${s}.conservation set phase = $1::smallint, cursor = $2::uuid`, [done ? 1 : 0, done ? NO_ID : last]);
  return done;
}

/**
 * A row that was written anew by hand has a new transaction: it is known by being open already, or by an attempt that is older than it. It is
 * not accepted a second time; that it carries something else is for the comparisons to find. Asked for as values and not with exists, which the
 * planner would answer by reading the whole of both tables.
 */
const rewritten = (s: string, from: string): string => `((select o.id from ${s}.conservation_open o where o.id = m.id) is not null
    or (select a.message_id from ${s}.attempt a where a.message_id = m.id and ${xidOf("a")} < ${from} limit 1) is not null)`;

async function countMessages(ask: Ask, s: string, mark: Mark): Promise<void> {
  const { from, to, floor, cursor } = mark;
  const rows = `(with ${NEXT_XID} select m.*, m.tableoid as place from x cross join ${s}.message m
    where m.id > '${cursor}' and m.created_at >= '${floor}' and ${xidOf("m")} >= ${from} and ${xidOf("m")} < ${to}
      and not ${rewritten(s, from)} order by m.id limit ${BATCH})`;
  const { n, last } = await countIn(ask, s, rows, true);
  if (n < BATCH) await ask(`update ${s}.conservation set phase = 2, cursor = '${NO_ID}', from_xid = to_xid`);
  else await ask(`update ${s}.conservation set cursor = $1::uuid`, [last]);
}

/** One batch. False: there is nothing left to read of what was there when the reading began. */
export async function registerSome(ask: Ask, s: string, mark: Mark): Promise<boolean> {
  if (mark.phase === 2) return false;
  if (mark.phase === 0) await countKept(ask, s, mark);
  else await countMessages(ask, s, mark);
  await refuseHalfWay(ask, s);
  return true;
}

/** Goes on to everything that has ended since; nothing, while an earlier reading is not at its end. */
export async function lookAhead(ask: Ask, s: string, mark: Mark): Promise<void> {
  if (mark.phase !== 2) return;
  await ask(`update ${s}.conservation c set phase = 1, to_xid = greatest(c.from_xid, pg_snapshot_xmin(pg_current_snapshot())::text::bigint),
    floor = coalesce((select least(clock_timestamp(), p.at) - ${SLACK} from ${s}.conservation_pass p where p.next_xid <= c.from_xid order by p.no desc limit 1), '-infinity')`);
}

/** What of a day's table has not been counted yet, before it goes: nobody writes into it any more. Null: only what was kept before the first pass. */
export async function registerDay(ask: Ask, s: string, mark: Mark, table: string | null): Promise<void> {
  let at = mark;
  while (at.phase === 0) {
    const done = await countKept(ask, s, at);
    const [row] = await ask(`select cursor::text from ${s}.conservation`);
    at = { ...at, phase: done ? 1 : 0, cursor: row?.[0] as string };
  }
  if (table === null) return;
  const seen =
    at.phase === 2
      ? `${xidOf("m")} < ${at.from}`
      : `(${xidOf("m")} < ${at.from} or (${xidOf("m")} < ${at.to} and m.id <= '${at.cursor}'))`;
  const rows = `(with ${NEXT_XID} select m.*, m.tableoid as place from x cross join ${s}.${table} m where not ${seen} and not ${rewritten(s, at.from)})`;
  await countIn(ask, s, rows, true);
}
