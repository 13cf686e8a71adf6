/**
 * LANES: which lanes hold pending messages and when their first is due, by a loose index scan (one descent per lane, at any
 * depth). A lane's first live row may stand behind all that was claimed since the last vacuum, so lanes that are known to hold
 * more are not looked into. The caller decides how often to look.
 */

import { perClock } from "../../shared/clock-sql.ts";
import type { Lane, Lanes } from "../../store.ts";
import type { Db } from "../db.ts";
import { KIND_ORDERED, kindSays } from "../lane-table.ts";
import type { Watermarks } from "../watermark.ts";
import { dueCountSql } from "./due.ts";

const LANE_MAX = 2 ** 31 - 1;

/** Parameters: lanes that are known to hold more and when, the gaps between them (after, until), how many, after which lane. */
export const lanesSql = (s: string) =>
  perClock(
    (clock) => `with recursive
    -- one lane after the other, through the gaps between the lanes that are known; they come in their order
    a(lane_id, due) as (
      (select n.lane_id, n.due from unnest($3::int[], $4::int[]) g(after, until) cross join lateral
        (select r.lane_id, r.due from ${s}.ready r where r.lane_id > g.after and r.lane_id < g.until order by r.lane_id, r.due, r.id limit 1) n limit 1)
      union all
      select n.lane_id, n.due from a cross join lateral
        (select n.* from unnest($3::int[], $4::int[]) g(after, until) cross join lateral
          (select r.lane_id, r.due from ${s}.ready r where r.lane_id > greatest(g.after, a.lane_id) and r.lane_id < g.until order by r.lane_id, r.due, r.id limit 1) n
        where g.until > a.lane_id + 1 limit 1) n),
    o(lane_id, due) as (
      (select r.lane_id, r.due from ${s}.ready_ordered r where not r.behind and r.lane_id > $6::int order by r.lane_id, r.due, r.seq, r.id limit 1)
      union all
      select n.lane_id, n.due from o cross join lateral
        (select r.lane_id, r.due from ${s}.ready_ordered r where not r.behind and r.lane_id > o.lane_id order by r.lane_id, r.due, r.seq, r.id limit 1) n),
    plain as materialized (select * from a limit $5::int),
    ordered as materialized (select * from o limit $5::int),
    -- up to where this part is whole
    whole(until) as materialized (select least(
      (select case when count(*) = $5::int then max(lane_id) else ${LANE_MAX} end from plain),
      (select case when count(*) = $5::int then max(lane_id) else ${LANE_MAX} end from ordered)))
    select null::text, until::text from whole
    union all
    select lane_id::text, case when due < 'infinity' then (extract(epoch from (due - ${clock})) * 1000)::bigint::text end
      from (select * from plain union all select * from unnest($1::int[], $2::timestamptz[]) union all select * from ordered) p(lane_id, due)
      where lane_id <= (select until from whole)`,
  );

export function createLanes(db: Db, watermarks: Watermarks): (which?: Lanes) => Promise<Lane[]> {
  const sql = lanesSql(db.s);
  const countSql = dueCountSql(db.s);

  /** One part: its rows by lane number, and up to which number it is whole. */
  async function part(after: number, limit: number | undefined, now: Date | undefined) {
    const marks = now === undefined ? watermarks.all().filter(({ lane }) => lane > after) : [];
    const lanes = marks.map(({ lane }) => lane);
    const values = [lanes, marks.map(({ due }) => due), [after, ...lanes], [...lanes, LANE_MAX], limit ?? null, after];
    const name = now === undefined ? "mg_lanes" : undefined;
    const rows = await db.connection.rows("look for work", sql(now), values, { reads: true, name });
    const until = Number(rows.find(([lane]) => lane === null)?.[1] ?? LANE_MAX);
    // Without a due date: all that is there is held.
    const found = rows
      .filter(([lane, due]) => lane !== null && due !== null)
      .map(([lane, due]) => [Number(lane), Number(due)] as const);
    return { until, found: found.sort(([a], [b]) => a - b) };
  }

  async function counts(lanes: readonly number[], now: Date | undefined): Promise<Map<number, number>> {
    const rows = await db.connection.rows("count what is due", countSql(now), [lanes], { reads: true });
    return new Map(rows.map(([lane, due]) => [Number(lane), Number(due)]));
  }

  return async function lanes({ after, limit, now, counted } = {}) {
    const all: (readonly [lane: number, dueInMs: number])[] = [];
    for (let from = Number(after ?? 0); ; ) {
      const { until, found } = await part(from, limit, now);
      all.push(...found);
      if (limit === undefined || until === LANE_MAX || all.length >= limit) break;
      from = until;
    }
    const known = await db.lanes.byId(all.map(([lane]) => lane));
    const due = counted ? await counts([...known.keys()], now) : null;
    const found: Lane[] = [];
    for (const [id, dueInMs] of all) {
      const lane = known.get(id);
      if (!lane) continue;
      found.push({
        lane: String(lane.id),
        topic: lane.topic,
        tenantId: lane.tenant === "" ? null : lane.tenant,
        priority: lane.priority,
        ...kindSays(lane.kind),
        ordered: lane.kind === KIND_ORDERED,
        dueInMs,
        ...(due === null ? {} : { due: due.get(id) ?? 0 }),
      });
    }
    return found;
  };
}
