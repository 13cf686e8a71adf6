/**
 * PRUNE: a day leaves as a whole once everything in it is settled and past its time; the few that still live are copied out first
 * (I2). Every step can be repeated: the next run finishes what a crash left half done. It also keeps partitions ahead and retires
 * lanes that had nothing for long.
 */

import { sleep } from "../../../platform/clock.ts";
import { idFloor } from "../../../platform/ids.ts";
import { CHUNK_BYTES_MAX } from "../../shared/archive-sql.ts";
import { clockSql } from "../../shared/clock-sql.ts";
import { tellWent } from "../../shared/tell-went.ts";
import type { PruneRequest } from "../../store.ts";
import type { Queryable } from "../connection.ts";
import { ensureDayIndexes } from "../day-indexes.ts";
import type { Db } from "../db.ts";
import { DAY_MS, dayOfPartition, daysAround, ensurePartitions, partitionSuffix } from "../partitions.ts";
import { unlessMoved } from "../unless-moved.ts";
import { archiveMessages, type Chunk } from "./archive-messages.ts";
import { fenceIn } from "./lead.ts";
import { createMendOrder } from "./mend-order.ts";
import { createRetireLanes } from "./retire-lanes.ts";

/** How long what is settled stays, by the clock of the call. */
interface Kept {
  readonly clock: string;
  readonly keptMs: number;
  readonly deadKeptMs: number;
}

const before = (clock: string, ms: number): string => `${clock} - ${Math.round(ms)}::bigint * interval '1 ms'`;

/**
 * Settled longer ago than the retention. What a lease still names stays until that lease has ended: its attempt row is what tells a reclaim
 * that it is settled.
 */
const gone = (
  s: string,
  { clock, keptMs, deadKeptMs }: Kept,
  id: string,
) => `(${id} not in (select unnest(l.ids) from ${s}.lease l) and (exists (select from ${s}.attempt a where a.message_id = ${id} and a.outcome in (1, 2)
    and a.at < ${before(clock, keptMs)})
  or exists (select from ${s}.dead_letter d where d.id = ${id} and d.resolution in (1, 2) and d.settled_at < ${before(clock, deadKeptMs)})))`;

/** Messages that go. `rows` is a relation of some of them with the columns of `message`, to stand behind `from`; between parts others have their turn. */
export interface Going {
  each(work: (rows: string) => Promise<void>): Promise<void>;
}

/**
 * What has to be written of messages that go, in the transaction in which they go: if it throws, they stay. `day`: the table that goes
 * with them, if one does, also where it is empty.
 */
export type Leaving = (client: Queryable, s: string, going: Going, day?: string) => Promise<void>;

const BATCH = 1_000;

const endedDead = (s: string) => `exists (select from ${s}.dead_letter d where d.id = m.id and d.resolution in (1, 2))`;

const detachedSql = `select c.relname, (i.inhrelid is not null)::text, coalesce(i.inhdetachpending, false)::text
  from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_inherits i on i.inhrelid = c.oid
  where n.nspname = $1 and c.relkind = 'r' and c.relname ~ '^message_[0-9]{8}$' order by 1`;

/** So much of a day's table is read at a time. */
const PART_BYTES = 8 * 1_048_576;
const REST_MS_MIN = 10;
const REST_MS_MAX = 1_000;

export function createPrune(db: Db, leaving: Leaving): (request: PruneRequest) => Promise<number> {
  const { connection, s } = db;
  const run = (text: string, values: unknown[] = []) => connection.rows("prune", text, values);

  /** All that one call writes, but for a partition that is detached: its fence is asked for before, and two may do it. */
  const inFence = <T>({ under }: PruneRequest, work: (client: Queryable) => Promise<T>): Promise<T> =>
    connection.transaction("prune", async (client) => {
      await fenceIn(client, s, under);
      return work(client);
    });

  /** Rests as long as the work took, so that retention has at most half of a core, however large a day is. */
  async function paced<T>(work: () => Promise<T>): Promise<T> {
    const startMs = db.clock.monotonicMs();
    const result = await work();
    const tookMs = db.clock.monotonicMs() - startMs;
    if (tookMs >= REST_MS_MIN) await sleep(db.clock, Math.min(tookMs, REST_MS_MAX));
    return result;
  }

  /** Of a day's ids, as conditions: ever so many parts of about the same time. */
  async function partsOf(table: string): Promise<string[]> {
    const day = dayOfPartition(table) as number;
    const [row] = await run("select pg_relation_size(to_regclass($1))::text", [`${s}.${table}`]);
    const count = Math.min(1_000, Math.max(1, Math.ceil(Number(row?.[0] ?? 0) / PART_BYTES)));
    const floor = (part: number) => idFloor(day + Math.round((part * DAY_MS) / count));
    return Array.from({ length: count }, (_, i) => `m.id >= '${floor(i)}' and m.id < '${floor(i + 1)}'`);
  }

  /** Bodies that still live, into the table that has no days. */
  const keepSql = (table: string, kept: Kept, part: string) =>
    `insert into ${s}.message_kept select * from ${s}.${table} m where ${part} and not ${gone(s, kept, "m.id")} on conflict do nothing`;

  /** As it stands now: while other days were on their way, another run may have taken it out. */
  async function detach(request: PruneRequest, table: string): Promise<void> {
    const [, attached, pending] = (await run(detachedSql, [s.replaceAll('"', "")])).find(([name]) => name === table) ?? [];
    if (attached !== "true") return;
    await inFence(request, async () => {});
    // Concurrently: a plain DETACH would wait for the callers' open transactions and hold up every enqueue behind itself.
    await run(`alter table ${s}.message detach partition ${s}.${table} ${pending === "true" ? "finalize" : "concurrently"}`);
  }

  async function dropKeys(request: PruneRequest, table: string, kept: Kept, limit: number): Promise<void> {
    for (let after = "00000000-0000-0000-0000-000000000000"; ; ) {
      const text = `with p as materialized (select m.id, m.key, m.lane_id from ${s}.${table} m where m.id > $1::uuid order by m.id limit $2::int),
        d as (delete from ${s}.dedupe k using p join ${s}.lane l on l.id = p.lane_id
          where p.key is not null and k.topic_id = l.topic_id and k.tenant = l.tenant and k.key = p.key and k.id = p.id and ${gone(s, kept, "p.id")})
        select max(id::text) as last from p`;
      const { rows } = await paced(() => inFence(request, (client) => client.query(text, [after, limit])));
      const [row] = rows as { last: string | null }[];
      if (!row?.last) return;
      after = row.last;
    }
  }

  /** The day's attempts go with it, but for those of messages that stay; they move to the default partition. */
  const dropDay = (
    request: PruneRequest,
    day: number,
    table: string,
    kept: Kept,
    chunks: Chunk[],
    dead: { count: number },
  ): Promise<number> =>
    inFence(request, async (client) => {
      chunks.length = 0;
      const attempts = `attempt_${partitionSuffix(day)}`;
      await client.query("set local lock_timeout = '5s'");
      // The work beside it has the other cores.
      await client.query("set local max_parallel_workers_per_gather = 0");
      const parts = await partsOf(table);
      for (const part of parts) await paced(() => client.query(keepSql(table, kept, part)));
      const goes = (part: string) =>
        `(select m.* from ${s}.${table} m where ${part} and not exists (select from ${s}.message_kept k where k.id = m.id))`;
      const going: Going = {
        async each(work) {
          for (const part of parts) await paced(() => work(goes(part)));
        },
      };
      let count = 0;
      dead.count = 0;
      await going.each(async (rows) => {
        const text = `select count(*)::int as n, (count(*) filter (where ${endedDead(s)}))::int as dead from ${rows} m`;
        const [found] = (await client.query(text)).rows as { n: number; dead: number }[];
        count += found?.n ?? 0;
        dead.count += found?.dead ?? 0;
      });
      await leaving(client, s, going, table);
      for (const one of request.archive?.classes ?? []) chunks.push(...(await archiveMessages(client, s, one, goes("true"))));
      await client.query(
        `delete from ${s}.dead_letter d using ${s}.${table} m where d.id = m.id and not exists (select from ${s}.message_kept k where k.id = m.id)`,
      );
      await client.query(`alter table ${s}.attempt detach partition ${s}.${attempts}`);
      await client.query(
        `insert into ${s}.attempt select a.* from ${s}.${attempts} a join ${s}.message_kept k on k.id = a.message_id`,
      );
      await client.query(`drop table ${s}.${attempts}`);
      await client.query(`drop table ${s}.${table}`);
      return count;
    });

  /** Of one table what is past its time, with everything of it, at most a thousand in one transaction. */
  async function pruneRows(request: PruneRequest, table: string, kept: Kept, limit: number): Promise<number> {
    let count = 0;
    for (let went = BATCH; went > 0 && count < limit; count += went) {
      const chunks: Chunk[] = [];
      const dead = { count: 0 };
      went = await inFence(request, (client) => {
        chunks.length = 0;
        return pruneBatch(client, request, table, kept, Math.min(BATCH, limit - count), chunks, dead);
      });
      tellWent(request, went, dead.count);
      for (const chunk of chunks) request.archive?.told(chunk);
    }
    return count;
  }

  /** A dead letter may have been opened again since: from here on nobody can. */
  async function stillGone(client: Queryable, table: string, kept: Kept, found: readonly unknown[]): Promise<string[]> {
    const ids = found.map((row) => (row as { id: string }).id);
    if (ids.length === 0) return ids;
    await client.query(`select from ${s}.dead_letter where id = any ($1::uuid[]) order by id for update`, [ids]);
    const text = `select m.id::text as id from ${s}.${table} m where m.id = any ($1::uuid[]) and ${gone(s, kept, "m.id")}`;
    return (await client.query(text, [ids])).rows.map((row) => (row as { id: string }).id);
  }

  async function pruneBatch(
    client: Queryable,
    { archive }: PruneRequest,
    table: string,
    kept: Kept,
    limit: number,
    chunks: Chunk[],
    dead: { count: number },
  ): Promise<number> {
    // By their bytes as well: what is archived together is one text.
    const found = await client.query(
      `select id::text as id from (select m.id, sum(octet_length(m.payload)) over (order by m.id) - octet_length(m.payload) as before from (
        select m.id, m.payload from ${s}.${table} m where ${gone(s, kept, "m.id")} order by m.id limit $1::int for update of m skip locked) m) x
      where before < ${CHUNK_BYTES_MAX}`,
      [limit],
    );
    const ids = await stillGone(client, table, kept, found.rows);
    if (ids.length === 0) return 0;
    const goes = `(select m.* from ${s}.${table} m where m.id = any ('{${ids.join(",")}}'::uuid[]))`;
    const { rows } = await client.query(`select count(*)::int as n from ${goes} m where ${endedDead(s)}`);
    dead.count = (rows[0] as { n: number }).n;
    await leaving(client, s, { each: (work) => work(goes) });
    for (const one of archive?.classes ?? []) chunks.push(...(await archiveMessages(client, s, one, goes)));
    await client.query(
      `with p as materialized (select m.id, m.key, m.lane_id from ${s}.${table} m where m.id = any ($1::uuid[])),
      k as (delete from ${s}.dedupe k using p join ${s}.lane l on l.id = p.lane_id
        where p.key is not null and k.topic_id = l.topic_id and k.tenant = l.tenant and k.key = p.key and k.id = p.id),
      a as (delete from ${s}.attempt a using p where a.message_id = p.id),
      d as (delete from ${s}.dead_letter d using p where d.id = p.id)
      delete from ${s}.${table} m using p where m.id = p.id`,
      [ids],
    );
    return ids.length;
  }

  /** Nothing is copied, detached or locked. */
  async function wouldGo(kept: Kept, days: readonly string[]): Promise<number> {
    let count = 0;
    for (const table of ["message_kept", ...days]) {
      const text = `select count(*)::text from ${s}.${table} m where ${gone(s, kept, "m.id")}`;
      const [row] = await connection.rows("look what to prune", text, [], { reads: true, patienceMs: 300_000 });
      count += Number(row?.[0]);
    }
    return count;
  }

  const mendOrder = createMendOrder(db);
  const retireLanes = createRetireLanes(db);

  return async function prune(request) {
    const { keptMs, limit, now, dryRun } = request;
    if (!dryRun) await mendOrder();
    const clock = clockSql(now);
    const kept = { clock, keptMs, deadKeptMs: Math.max(keptMs, request.deadKeptMs ?? keptMs) };
    const [time] = await run(`select extract(epoch from ${clock})::text`);
    const nowMs = Number(time?.[0]) * 1_000;
    const past = (table: string): boolean => {
      const day = dayOfPartition(table);
      return day !== null && day + DAY_MS <= nowMs - keptMs;
    };
    if (dryRun) {
      const days = (await run(detachedSql, [s.replaceAll('"', "")])).map(([table]) => table as string);
      return wouldGo(kept, days.filter(past));
    }
    await ensurePartitions(connection, s, daysAround(nowMs));
    await ensureDayIndexes(connection, s);
    let count = await pruneRows(request, "message_kept", kept, limit);
    for (const [name] of await run(detachedSql, [s.replaceAll('"', "")])) {
      const table = name as string;
      if (!past(table) || count >= limit) continue;
      const chunks: Chunk[] = [];
      const dead = { count: 0 };
      const went = await unlessMoved(db, table, 0, async () => {
        for (const part of await partsOf(table))
          await paced(() => inFence(request, (client) => client.query(keepSql(table, kept, part))));
        await detach(request, table);
        await dropKeys(request, table, kept, 10_000);
        return dropDay(request, dayOfPartition(table) as number, table, kept, chunks, dead);
      });
      count += went;
      if (went === 0) continue;
      tellWent(request, went, dead.count);
      for (const chunk of chunks) request.archive?.told(chunk);
    }
    // A day that was left half way still needs its lanes, to find its keys.
    if ((await run(detachedSql, [s.replaceAll('"', "")])).every(([, attached]) => attached === "true")) await retireLanes(now);
    return count;
  };
}
