/**
 * CLAIM of messages with ordering keys: only the head of a key (lowest number among visible rows), only when it is due and nothing
 * of its key is in flight; of all heads, those due longest. A row that is seen and waits for another is marked `behind` and not seen
 * again until its key opens, so blocked, delayed or closed keys hide no others, however many they are (docs/decisions/0005).
 */
import { LIMITS } from "../../../message/limits.ts";
import type { ClaimedMessage } from "../../../message/message.ts";
import { perClock } from "../../shared/clock-sql.ts";
import type { ClaimRequest, From } from "../../store.ts";
import type { Db } from "../db.ts";
import { type Beginning, BODY, BODY_COLUMNS, beginningOf, bodyOf, claimedRows, FAILED, leaseOf, UNHURRIED } from "./claimed.ts";
import { spotOf } from "./spot.ts";

/** Rows that are looked at beyond those wanted: at first, and again where some of them turned out to be behind others. */
const SPARE = 16;
const SPARE_AGAIN = 1_000;
/** How often one claim looks again: for long while it has nothing, hardly once a lease runs. What is left then is for the next claim. */
const ROUNDS_MAX = 200;
const ROUNDS_MAX_HELD = 3;

/** What failed, and suspects, come back later than others: at the end of a lane they would be all that is seen. */
const UNTRIED = "and not r.failed and r.suspicion = 0";

/** The lanes `l`, which of their rows are looked at, and in which order. */
const FROM = {
  oldest: () => ({ lanes: "unnest($1::int[], $2::int[]) l(lane, n)", only: "", way: "" }),
  newest: () => ({ ...FROM.oldest(), only: UNTRIED, way: " desc" }),
  inside(s: string, clock: string) {
    const where = `r.lane_id = l.lane and not r.behind ${UNTRIED}`;
    const spot = spotOf({ table: `${s}.ready_ordered`, where, columns: ["due", "seq", "id"], clock }, "l.part", "l.n");
    const lanes = `unnest($1::int[], $2::int[], $8::float8[]) l(lane, n, part) cross join lateral (${spot}) a`;
    return { lanes, only: `${UNTRIED} and (r.due, r.seq, r.id) >= (a.due, a.seq, a.id)`, way: "" };
  },
};

/**
 * Parameters: lanes, how many of each, owner, lease ms, bytes, at least one, spare; for `inside` at which part of each. The head is chosen from the snapshot, *that*
 * row is locked, then its order_lock must succeed: taking "the first unlocked one" instead would hand out the second message
 * while the first is being claimed. What a row waits for is held while the row is marked, and the statement that removes that
 * shows the next one. Nothing waits here for a lock. Its limit makes each probe one index descent, whatever sizes the planner
 * assumes.
 */
const orderedFrom = (s: string, from: Beginning) =>
  perClock((clock) => {
    const { lanes, only, way } = FROM[from](s, clock);
    return `with
  c as materialized (
    select l.n as wanted, r.* from ${lanes} cross join lateral (
      select r.* from ${s}.ready_ordered r where r.lane_id = l.lane and not r.behind and r.due <= ${clock} ${only}
      order by r.due${way}, r.seq${way}, r.id${way} limit l.n + $7::int for update skip locked) r),
  k as materialized (
    select c.*, h.id as head, h.behind as forgotten, o.id as holder from c cross join lateral (
      select h.id, h.behind from ${s}.ready_ordered h where h.lane_id = c.lane_id and h.ordering_key = c.ordering_key order by h.seq, h.id limit 1) h
    left join lateral (select o.id from ${s}.order_lock o where o.lane_id = c.lane_id and o.ordering_key = c.ordering_key limit 1) o on true),
  x as materialized (
    select o.id from (select distinct holder from k) k cross join lateral (
      select o.id from ${s}.order_lock o where o.id = k.holder limit 1 for share skip locked) o
    union all
    select r.id from (select distinct head from k where holder is null and head <> id) k cross join lateral (
      select r.id from ${s}.ready_ordered r where r.id = k.head limit 1 for share skip locked) r),
  z as (update ${s}.ready_ordered set behind = true where id = any (array(
    select k.id from k join x on x.id = coalesce(k.holder, k.head) where k.holder is not null or k.head <> k.id)) returning 1),
  -- cannot be, but for an intervention of the version before or one that was cut off
  y as (update ${s}.ready_ordered set behind = false where id = any (array(select head from k where holder is null and forgotten)) returning 1),
  g as materialized (
    select * from (select k.*, row_number() over (partition by lane_id order by due${way}, seq${way}, id${way}) as place from k where holder is null and head = id) k
    where place <= wanted),
  -- suspects of killing workers are not mixed with others: the head due longest says whose turn it is
  e as materialized (select suspicion from g order by due, seq, id limit 1),
  t as (select g.*, row_number() over (order by g.lane_id, g.place) as o from g join e using (suspicion)
    order by g.lane_id, g.place limit (select case suspicion when 0 then null when 1 then ${LIMITS.suspectGroupMax} else 1 end from e)),
  w as materialized (
    select t.id, t.lane_id, t.ordering_key as of_key, t.seq, t.attempts, t.base, t.suspicion, t.failed, t.o, ${BODY_COLUMNS},
      sum(octet_length(coalesce(m.payload, k.payload))) over (order by t.o rows unbounded preceding) as bytes
    from t ${bodyOf(s, "t.id")}),
  lk as (insert into ${s}.order_lock (lane_id, ordering_key, id, seq, failed)
    select lane_id, of_key, id, seq, failed from w where ($6::boolean and o = 1) or coalesce(bytes, 0) <= $5::bigint order by lane_id, of_key
    on conflict do nothing returning id),
  b as materialized (select w.*, row_number() over (order by w.o) as p from w join lk using (id) order by w.o),
  d as (delete from ${s}.ready_ordered where id = any (array(select id from b))),
  n as (${leaseOf(s, clock, "b", "max(suspicion)", "$3", "$4")})
  select null::uuid, null::int, null::int, null::smallint, (select id::text from n), (select token::text from n),
    ((select count(*) from z) + (select count(*) from y))::text, null, null::int, null::boolean, null::smallint where ${UNHURRIED}
  union all
  (select b.id, b.lane_id, b.attempts + 1, b.base, ${BODY}, b.suspicion + case when b.failed then ${FAILED} else 0 end from b order by b.p)`;
  });

export const orderedSql = perSchema((s) => orderedFrom(s, "oldest"));
const SQL = {
  oldest: orderedSql,
  newest: perSchema((s) => orderedFrom(s, "newest")),
  inside: perSchema((s) => orderedFrom(s, "inside")),
};

export interface Bytes {
  readonly bytesMax: number;
  readonly atLeastOne: boolean;
}

interface Wanted {
  readonly id: number;
  readonly limit: number;
  readonly from: From;
}

/** The lanes of one call all begin the same way. */
export async function claimOrdered(
  db: Db,
  lanes: readonly Wanted[],
  request: ClaimRequest,
  { bytesMax, atLeastOne }: Bytes,
): Promise<ClaimedMessage[]> {
  const from = beginningOf(lanes[0] as Wanted);
  const known = await db.lanes.byId(lanes.map((l) => l.id));
  const name = request.now === undefined && from === "oldest" ? "mg_claim_ordered" : undefined;
  const sql = SQL[from](db.s)(request.now);
  const all: ClaimedMessage[] = [];
  const left = new Map(lanes.map(({ id, limit }) => [id, limit]));
  let bytes = bytesMax;
  for (let round = 0; round < ROUNDS_MAX && left.size > 0 && (bytes > 0 || all.length === 0); round++) {
    const usual = [request.owner, request.leaseMs, bytes, atLeastOne && all.length === 0, round === 0 ? SPARE : SPARE_AGAIN];
    const values: unknown[] = [[...left.keys()], [...left.values()], ...usual];
    if (from === "inside") values.push(lanes.flatMap((lane) => (left.has(lane.id) ? [lane.from] : [])));
    const rows = await db.connection.rows("claim ordered", sql, values, { name });
    const claimed = claimedRows(rows, known);
    all.push(...claimed);
    for (const { lane, payload } of claimed) {
      bytes -= Buffer.byteLength(payload);
      const wanted = (left.get(Number(lane)) as number) - 1;
      if (wanted > 0) left.set(Number(lane), wanted);
      else left.delete(Number(lane));
    }
    // Nothing was in the way of others: what came is what there is.
    if (rows[0]?.[6] === "0" || (all.length > 0 && round >= ROUNDS_MAX_HELD)) break;
  }
  if (from !== "inside" || all.length > 0) return all;
  // Every head failed before: the one that is due longest will do.
  const oldest = lanes.map((lane): Wanted => ({ ...lane, from: "oldest" }));
  return claimOrdered(db, oldest, request, { bytesMax, atLeastOne });
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
