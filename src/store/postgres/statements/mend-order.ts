/**
 * MEND: shows the head of a key that is marked as waiting for another although nothing is before it and nothing of its key is in
 * flight. Our own statements leave none; an intervention of the version before, or an operator who edits the tables, may. A
 * bounded walk over the keys with each upkeep, round and round.
 */
import type { Db } from "../db.ts";

const KEYS_MAX = 5_000;

/** $1 lane and $2 key to begin after. Answers with where the walk came to. */
const mendSql = (s: string) => `with recursive
  k(lane_id, ordering_key, n) as (
    (select r.lane_id, r.ordering_key, 1 from ${s}.ready_ordered r where (r.lane_id, r.ordering_key) > ($1::int, $2::text collate "C")
      order by r.lane_id, r.ordering_key limit 1)
    union all
    select n.lane_id, n.ordering_key, k.n + 1 from k cross join lateral (
      select r.lane_id, r.ordering_key from ${s}.ready_ordered r where (r.lane_id, r.ordering_key) > (k.lane_id, k.ordering_key)
      order by r.lane_id, r.ordering_key limit 1) n
    where k.n < ${KEYS_MAX}),
  h as materialized (
    select h.id from k cross join lateral (
      select h.id, h.behind from ${s}.ready_ordered h where h.lane_id = k.lane_id and h.ordering_key = k.ordering_key order by h.seq, h.id limit 1) h
    left join lateral (select o.id from ${s}.order_lock o where o.lane_id = k.lane_id and o.ordering_key = k.ordering_key limit 1) o on true
    where h.behind and o.id is null),
  u as (update ${s}.ready_ordered set behind = false where id = any (array(select id from h)) returning 1)
  select lane_id::text, ordering_key, (select count(*)::text from u) from k order by n desc limit 1`;

/** Each call goes on where the one before stopped. */
export function createMendOrder(db: Db): () => Promise<void> {
  const sql = mendSql(db.s);
  let after: [lane: number, key: string] = [0, ""];
  return async () => {
    const [row] = await db.connection.rows("mend order", sql, after);
    after = row ? [Number(row[0]), row[1] as string] : [0, ""];
  };
}
