import { perClock } from "../clock-sql.js";
import { KIND_ORDERED } from "../lane-table.js";
const lanesSql = (s) => perClock((clock) => `with recursive
    a(lane_id, due) as (
      (select lane_id, due from ${s}.ready order by lane_id, due, id limit 1)
      union all
      select n.lane_id, n.due from a cross join lateral
        (select r.lane_id, r.due from ${s}.ready r where r.lane_id > a.lane_id order by r.lane_id, r.due, r.id limit 1) n),
    o(lane_id) as (
      (select lane_id from ${s}.ready_ordered order by lane_id limit 1)
      union all
      select (select r.lane_id from ${s}.ready_ordered r where r.lane_id > o.lane_id order by r.lane_id limit 1) from o where o.lane_id is not null)
    select lane_id::text, (extract(epoch from (due - ${clock})) * 1000)::bigint::text from a where due < 'infinity'
    union all
    select o.lane_id::text, (extract(epoch from (h.due - ${clock})) * 1000)::bigint::text from o cross join lateral
      (select min(f.due) as due from
        (select distinct on (r.ordering_key) r.due, r.ordering_key from
          (select * from ${s}.ready_ordered r where r.lane_id = o.lane_id order by r.ordering_key, r.id limit 500) r order by r.ordering_key, r.id) f
        where f.due < 'infinity' and not exists (select from ${s}.order_lock k where k.lane_id = o.lane_id and k.ordering_key = f.ordering_key)) h
    where o.lane_id is not null and h.due is not null`);
/** At most this share of the time goes into looking. */
const COST_FACTOR = 10;
export function createLanes(db) {
    const sql = lanesSql(db.s);
    let last;
    return async function lanes(at) {
        const started = db.clock.monotonicMs();
        if (last && at?.now === undefined && last.tookMs > 10 && started - last.at < last.tookMs * COST_FACTOR)
            return last.lanes;
        const rows = await db.connection.rows("look for work", sql(at?.now), [], { reads: true });
        const known = await db.lanes.byId(rows.map((row) => Number(row[0])));
        const found = [];
        for (const row of rows) {
            const lane = known.get(Number(row[0]));
            if (!lane)
                continue;
            found.push({
                lane: String(lane.id),
                topic: lane.topic,
                tenantId: lane.tenant === "" ? null : lane.tenant,
                priority: lane.priority,
                suspicion: (lane.kind === KIND_ORDERED ? 0 : lane.kind),
                ordered: lane.kind === KIND_ORDERED,
                dueInMs: Number(row[1]),
            });
        }
        const ended = db.clock.monotonicMs();
        last = { lanes: found, at: ended, tookMs: ended - started };
        return found;
    };
}
//# sourceMappingURL=lanes.js.map