/**
 * PRUNE: a day leaves as a whole once everything in it is settled and past its time; the few that still live are copied out first
 * (I2). Every step can be repeated: the next run finishes what a crash left half done. It also keeps partitions ahead and retires
 * lanes that had nothing for long.
 */

import { clockSql } from "../../shared/clock-sql.ts";
import type { PruneRequest } from "../../store.ts";
import { ensureDayIndexes } from "../day-indexes.ts";
import type { Db } from "../db.ts";
import { DAY_MS, dayOfPartition, daysAround, ensurePartitions, partitionSuffix } from "../partitions.ts";
import { createMendOrder } from "./mend-order.ts";
import { createRetireLanes } from "./retire-lanes.ts";

/**
 * Settled longer ago than the retention: $1 is the retention in ms. What a lease still names stays until that lease has ended:
 * its attempt row is what tells a reclaim that it is settled.
 */
const gone = (
  s: string,
  clock: string,
  id: string,
) => `(${id} not in (select unnest(l.ids) from ${s}.lease l) and (exists (select from ${s}.attempt a where a.message_id = ${id} and a.outcome in (1, 2)
    and a.at < ${clock} - $1::bigint * interval '1 ms')
  or exists (select from ${s}.dead_letter d where d.id = ${id} and d.resolution in (1, 2) and d.settled_at < ${clock} - $1::bigint * interval '1 ms')))`;

const detachedSql = `select c.relname, (i.inhrelid is not null)::text, coalesce(i.inhdetachpending, false)::text
  from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_inherits i on i.inhrelid = c.oid
  where n.nspname = $1 and c.relkind = 'r' and c.relname ~ '^message_[0-9]{8}$' order by 1`;

export function createPrune(db: Db): (request: PruneRequest) => Promise<number> {
  const { connection, s } = db;
  const run = (text: string, values: unknown[] = []) => connection.rows("prune", text, values);

  /** Bodies that still live, into the table that has no days. */
  const keep = (table: string, clock: string, keptMs: number) =>
    run(
      `insert into ${s}.message_kept select * from ${s}.${table} m where not ${gone(s, clock, "m.id")} on conflict do nothing`,
      [keptMs],
    );

  async function detach(table: string, attached: boolean, pending: boolean): Promise<void> {
    if (!attached) return;
    // Concurrently: a plain DETACH would wait for the callers' open transactions and hold up every enqueue behind itself.
    await run(`alter table ${s}.message detach partition ${s}.${table} ${pending ? "finalize" : "concurrently"}`);
  }

  async function dropKeys(table: string, clock: string, keptMs: number, limit: number): Promise<void> {
    for (let after = "00000000-0000-0000-0000-000000000000"; ; ) {
      const [row] = await run(
        `with p as materialized (select m.id, m.key, m.lane_id from ${s}.${table} m where m.id > $2::uuid order by m.id limit $3::int),
        d as (delete from ${s}.dedupe k using p join ${s}.lane l on l.id = p.lane_id
          where p.key is not null and k.topic_id = l.topic_id and k.tenant = l.tenant and k.key = p.key and k.id = p.id and ${gone(s, clock, "p.id")})
        select max(id::text) from p`,
        [keptMs, after, limit],
      );
      if (!row?.[0]) return;
      after = row[0];
    }
  }

  /** The day's attempts go with it, but for those of messages that stay; they move to the default partition. */
  async function dropDay(day: number, table: string, clock: string, keptMs: number): Promise<number> {
    const attempts = `attempt_${partitionSuffix(day)}`;
    let count = 0;
    await connection.transaction("prune", async (client) => {
      await client.query("set local lock_timeout = '5s'");
      await client.query(
        `insert into ${s}.message_kept select * from ${s}.${table} m where not ${gone(s, clock, "m.id")} on conflict do nothing`,
        [keptMs],
      );
      const { rows } = await client.query(
        `select count(*)::int as n from ${s}.${table} m where not exists (select from ${s}.message_kept k where k.id = m.id)`,
      );
      count = (rows[0] as { n: number }).n;
      await client.query(
        `delete from ${s}.dead_letter d using ${s}.${table} m where d.id = m.id and not exists (select from ${s}.message_kept k where k.id = m.id)`,
      );
      await client.query(`alter table ${s}.attempt detach partition ${s}.${attempts}`);
      await client.query(
        `insert into ${s}.attempt select a.* from ${s}.${attempts} a join ${s}.message_kept k on k.id = a.message_id`,
      );
      await client.query(`drop table ${s}.${attempts}`);
      await client.query(`drop table ${s}.${table}`);
    });
    return count;
  }

  /** Bodies that outlived their day, once they too are past their time. */
  async function pruneKept(clock: string, keptMs: number, limit: number): Promise<number> {
    const rows = await run(
      `with p as materialized (select m.id, m.key, m.lane_id from ${s}.message_kept m where ${gone(s, clock, "m.id")} order by m.id limit $2::int),
      k as (delete from ${s}.dedupe k using p join ${s}.lane l on l.id = p.lane_id
        where p.key is not null and k.topic_id = l.topic_id and k.tenant = l.tenant and k.key = p.key and k.id = p.id),
      a as (delete from ${s}.attempt a using p where a.message_id = p.id),
      d as (delete from ${s}.dead_letter d using p where d.id = p.id)
      delete from ${s}.message_kept m using p where m.id = p.id returning 1`,
      [keptMs, limit],
    );
    return rows.length;
  }

  const mendOrder = createMendOrder(db);
  const retireLanes = createRetireLanes(db);

  return async function prune({ keptMs, limit, now }) {
    await mendOrder();
    const clock = clockSql(now);
    const [time] = await run(`select extract(epoch from ${clock})::text`);
    const nowMs = Number(time?.[0]) * 1_000;
    await ensurePartitions(connection, s, daysAround(nowMs));
    await ensureDayIndexes(connection, s);
    let count = await pruneKept(clock, keptMs, limit);
    for (const [table, attached, pending] of await run(detachedSql, [s.replaceAll('"', "")])) {
      const day = dayOfPartition(table as string);
      if (day === null || day + DAY_MS > nowMs - keptMs || count >= limit) continue;
      await keep(table as string, clock, keptMs);
      await detach(table as string, attached === "true", pending === "true");
      await dropKeys(table as string, clock, keptMs, 10_000);
      count += await dropDay(day, table as string, clock, keptMs);
    }
    // A day that was left half way still needs its lanes, to find its keys.
    if ((await run(detachedSql, [s.replaceAll('"', "")])).every(([, attached]) => attached === "true")) await retireLanes(now);
    return count;
  };
}
