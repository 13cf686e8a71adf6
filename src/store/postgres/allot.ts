/**
 * What all workers share of a topic's rate and of its places, in PostgreSQL. A bucket is a row that one statement fills and takes from,
 * under its own lock; the places of a topic are counted by a function under a lock of the topic (migrations/0013-allot.ts).
 */
import { BUCKET_KEPT_MS, bucketOf } from "../../message/rate.ts";
import { clockSql, perClock } from "../shared/clock-sql.ts";
import type { TopicStore } from "../topics.ts";
import type { Db } from "./db.ts";

/** Now and then buckets are dropped that have been full for long: tenants come and go. */
const SWEEP_EVERY = 1_000;

/** What is there before anything is taken; the new row says at which rate and burst. */
const THERE = "least(excluded.burst, a.tokens + greatest(0, extract(epoch from excluded.at - a.at))::float8 * excluded.rate)";
const GRANTED = `case when excluded.wanted < 0 then excluded.wanted else least(excluded.wanted, floor(greatest(0, ${THERE}) + 1e-6)) end`;

const allotSql = (s: string, clock: string) => `
with w as (select * from unnest($1::text[], $2::text[], $3::float8[], $4::float8[]) with ordinality as w (topic, bucket, rate, wanted, n)),
done as (
  insert into ${s}.starts as a (topic, bucket, rate, burst, wanted, granted, tokens, at)
  select topic, bucket, rate, greatest(1, rate), wanted,
    case when wanted < 0 then wanted else least(wanted, floor(greatest(1, rate))) end,
    least(greatest(1, rate), greatest(1, rate) - case when wanted < 0 then 0 else least(wanted, floor(greatest(1, rate))) end), ${clock}
  from w order by topic, bucket
  on conflict (topic, bucket) do update set rate = excluded.rate, burst = excluded.burst, wanted = excluded.wanted,
    granted = ${GRANTED}, tokens = least(excluded.burst, ${THERE} - (${GRANTED})),
    at = case when excluded.at < a.at - interval '1 s' then excluded.at else greatest(a.at, excluded.at) end
  returning topic, bucket, rate, granted, tokens)
select d.granted::text, greatest(0, (1 - 1e-6 - d.tokens) / d.rate * 1000)::text
from w join done d on d.topic = w.topic and d.bucket = w.bucket order by w.n`;

export function createAllot({ connection, s }: Pick<Db, "connection" | "s">): Pick<TopicStore, "allot" | "occupy"> {
  const statement = perClock((clock) => allotSql(s, clock));
  let calls = 0;

  async function sweep(): Promise<void> {
    const old = `delete from ${s}.starts where at < ${clockSql(undefined)} - $1::bigint * interval '1 ms'`;
    await connection.rows("sweep starts", old, [BUCKET_KEPT_MS]);
  }

  return {
    async allot(wanted, at) {
      if (wanted.length === 0) return [];
      if (++calls % SWEEP_EVERY === 0) void sweep().catch(() => {});
      const values = [
        wanted.map(({ topic }) => topic),
        wanted.map(({ tenantId }) => bucketOf(tenantId)),
        wanted.map(({ perSecond }) => perSecond),
        wanted.map(({ amount }) => amount),
      ];
      const name = at?.now === undefined ? "makegood_allot" : undefined;
      const rows = await connection.rows("allot starts", statement(at?.now), values, { name });
      return rows.map(([granted, nextInMs]) => ({ granted: Number(granted), nextInMs: Number(nextInMs) }));
    },
    async occupy(owner, wanted, ttlMs, at) {
      if (wanted.length === 0) return [];
      // Always in the same order: two callers must not wait for each other's topics.
      const sorted = wanted.map((one, n) => ({ ...one, n })).sort((a, b) => (a.topic < b.topic ? -1 : 1));
      const text = `select array_to_json(${s}.occupy($1, $2::text[], $3::int[], $4::int[], $5::bigint, $6::timestamptz))::text`;
      const values = [owner, sorted.map((one) => one.topic), sorted.map((one) => one.total), sorted.map((one) => one.wants)];
      const [row] = await connection.rows("occupy slots", text, [...values, Math.ceil(ttlMs), at?.now?.toISOString() ?? null]);
      const held = JSON.parse(row?.[0] ?? "[]") as number[];
      const inOrder: number[] = [];
      for (const [i, { n }] of sorted.entries()) inOrder[n] = held[i] ?? 0;
      return inOrder;
    },
  };
}
