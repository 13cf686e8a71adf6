/**
 * LANES: which lanes hold pending messages and when their first is due, by a loose index scan (one descent per lane, whatever
 * the depth). A lane's first live row may stand behind all that was claimed since the last vacuum, so lanes that are known to hold
 * more are not looked into. How often to look is the caller's to decide.
 */
import type { At, Lane } from "../../store.ts";
import { perClock } from "../clock-sql.ts";
import type { Db } from "../db.ts";
import { KIND_ORDERED, kindSays } from "../lane-table.ts";
import type { Watermarks } from "../watermark.ts";

export const lanesSql = (s: string) =>
  perClock(
    (clock) => `with recursive
    -- the gaps between the lanes that are known
    a(lane_id, due, until) as (
      select n.lane_id, n.due, g.until from unnest($3::int[], $4::int[]) g(after, until) cross join lateral
        (select r.lane_id, r.due from ${s}.ready r where r.lane_id > g.after and r.lane_id < g.until order by r.lane_id, r.due, r.id limit 1) n
      union all
      select n.lane_id, n.due, a.until from a cross join lateral
        (select r.lane_id, r.due from ${s}.ready r where r.lane_id > a.lane_id and r.lane_id < a.until order by r.lane_id, r.due, r.id limit 1) n),
    o(lane_id, due) as (
      (select r.lane_id, r.due from ${s}.ready_ordered r where not r.behind order by r.lane_id, r.due, r.seq, r.id limit 1)
      union all
      select n.lane_id, n.due from o cross join lateral
        (select r.lane_id, r.due from ${s}.ready_ordered r where not r.behind and r.lane_id > o.lane_id order by r.lane_id, r.due, r.seq, r.id limit 1) n)
    select lane_id::text, (extract(epoch from (due - ${clock})) * 1000)::bigint::text
      from (select lane_id, due from a union all select * from unnest($1::int[], $2::timestamptz[]) union all select lane_id, due from o) p(lane_id, due) where due < 'infinity'`,
  );

const LANE_MIN = 0;
const LANE_MAX = 2 ** 31 - 1;

export function createLanes(db: Db, watermarks: Watermarks): (at?: At) => Promise<Lane[]> {
  const sql = lanesSql(db.s);

  return async function lanes(at) {
    const marks = at?.now === undefined ? watermarks.all() : [];
    const lanes = marks.map(({ lane }) => lane);
    const values = [lanes, marks.map(({ due }) => due), [LANE_MIN, ...lanes], [...lanes, LANE_MAX]];
    const name = at?.now === undefined ? "mg_lanes" : undefined;
    const rows = await db.connection.rows("look for work", sql(at?.now), values, { reads: true, name });
    const known = await db.lanes.byId(rows.map((row) => Number(row[0])));
    const found: Lane[] = [];
    for (const row of rows) {
      const lane = known.get(Number(row[0]));
      if (!lane) continue;
      found.push({
        lane: String(lane.id),
        topic: lane.topic,
        tenantId: lane.tenant === "" ? null : lane.tenant,
        priority: lane.priority,
        ...kindSays(lane.kind),
        ordered: lane.kind === KIND_ORDERED,
        dueInMs: Number(row[1]),
      });
    }
    return found;
  };
}
