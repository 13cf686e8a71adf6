/**
 * CLAIM of messages with ordering keys: only the head of a key (lowest id among visible rows), only when it is due and nothing
 * of its key is in flight. The head is chosen from the snapshot, *that* row is locked, then its order_lock must succeed: taking
 * "the first unlocked one" instead would hand out the second message while the first is being claimed.
 */
import type { ClaimedMessage } from "../../../message/message.ts";
import type { ClaimRequest } from "../../store.ts";
import { perClock } from "../clock-sql.ts";
import type { Db } from "../db.ts";
import { BODY, BODY_COLUMNS, bodyOf, claimedRows, headOf, leaseOf } from "./claimed.ts";

/** The key each lane's next claim starts after, so that many keys take turns. */
export type Rotation = Map<number, string>;

/** Keys looked at per lane and claim: waiting or busy heads must not make a claim walk through all keys. */
const KEYS_MAX = 1_000;

const orderedSql = perSchema((s) =>
  perClock(
    (clock) => `with
  h as materialized (
    select h.lane_id, h.ordering_key, h.id from unnest($1::int[], $2::int[], $3::text[]) l(lane, n, after) cross join lateral (
      with recursive k(ordering_key, depth) as (
        (select r.ordering_key, 1 from ${s}.ready_ordered r where r.lane_id = l.lane and r.ordering_key > l.after collate "C" order by r.ordering_key limit 1)
        union all
        select (select r.ordering_key from ${s}.ready_ordered r where r.lane_id = l.lane and r.ordering_key > k.ordering_key order by r.ordering_key limit 1), depth + 1
        from k where k.ordering_key is not null and depth < ${KEYS_MAX})
      select h.* from k cross join lateral (
        select * from ${s}.ready_ordered r where r.lane_id = l.lane and r.ordering_key = k.ordering_key order by r.id limit 1) h
      where k.ordering_key is not null and h.due <= ${clock}
        and not exists (select from ${s}.order_lock o where o.lane_id = l.lane and o.ordering_key = k.ordering_key)
      limit l.n) h),
  g as materialized (
    select r.* from ${s}.ready_ordered r join h using (lane_id, ordering_key, id) order by r.lane_id, r.ordering_key for update of r skip locked),
  -- suspects of killing workers are not mixed with others: the oldest head says whose turn it is
  e as materialized (select suspicion from g order by id limit 1),
  t as (select g.*, row_number() over (order by g.lane_id, g.ordering_key) as o from g join e using (suspicion)
    order by g.lane_id, g.ordering_key limit (select case suspicion when 0 then null when 1 then 8 else 1 end from e)),
  w as materialized (
    select t.id, t.lane_id, t.due, t.attempts, t.base, t.suspicion, t.o, ${BODY_COLUMNS},
      sum(octet_length(coalesce(m.payload, k.payload))) over (order by t.o rows unbounded preceding) as bytes
    from t ${bodyOf(s, "t.id")}),
  lk as (insert into ${s}.order_lock (lane_id, ordering_key, id)
    select lane_id, ordering_key, id from w where ($7::boolean and o = 1) or coalesce(bytes, 0) <= $6::bigint order by lane_id, ordering_key
    on conflict do nothing returning id),
  b as materialized (select w.*, row_number() over (order by w.o) as p from w join lk using (id) order by w.o),
  d as (delete from ${s}.ready_ordered r using b where r.id = b.id),
  n as (${leaseOf(s, clock, "b", "max(suspicion)", "$4", "$5")})
  ${headOf("null")}
  union all
  (select b.id, b.lane_id, b.attempts + 1, b.base, ${BODY}, b.suspicion from b order by b.p)`,
  ),
);

export async function claimOrdered(
  db: Db,
  rotation: Rotation,
  lanes: readonly { id: number; limit: number }[],
  request: ClaimRequest,
  { bytesMax, atLeastOne }: { bytesMax: number; atLeastOne: boolean },
): Promise<ClaimedMessage[]> {
  const rows = await db.connection.rows("claim ordered", orderedSql(db.s)(request.now), [
    lanes.map((l) => l.id),
    lanes.map((l) => l.limit),
    lanes.map((l) => rotation.get(l.id) ?? ""),
    request.owner,
    request.leaseMs,
    bytesMax,
    atLeastOne,
  ]);
  const claimed = claimedRows(rows, await db.lanes.byId(lanes.map((l) => l.id)));
  for (const { id, limit } of lanes) {
    const mine = claimed.filter((m) => m.lane === String(id));
    const last = mine.at(-1)?.orderingKey;
    const started = rotation.get(id) ?? "";
    if (last && mine.length >= limit) rotation.set(id, last);
    else if (started !== "" && mine.length === 0) rotation.set(id, "");
    else rotation.delete(id);
  }
  return claimed;
}

/** Statements of a schema are made once. */
function perSchema<T>(make: (s: string) => T): (s: string) => T {
  const made = new Map<string, T>();
  return (s) => {
    const known = made.get(s);
    if (known) return known;
    const fresh = make(s);
    made.set(s, fresh);
    return fresh;
  };
}
