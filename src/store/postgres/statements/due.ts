/**
 * DUE: what a claim of some lanes would find now, from the indexes that claims use: a bounded list, each lane read as far as the list may need
 * it, and numbers, which read an index entry for each.
 */
import { perClock } from "../../shared/clock-sql.ts";

/** Of an ordered lane the heads of open keys. Each probe is one index descent: as joins they would be planned by sizes that are guessed. */
const openHead = (s: string) => `not r.behind
      and (select h.id from ${s}.ready_ordered h where h.lane_id = r.lane_id and h.ordering_key = r.ordering_key order by h.seq, h.id limit 1) = r.id
      and (select o.id from ${s}.order_lock o where o.lane_id = r.lane_id and o.ordering_key = r.ordering_key limit 1) is null`;

/** Parameters: lanes, how many. The longest due first. */
export const dueSql = (s: string) =>
  perClock(
    (clock) => `select d.id::text from unnest($1::int[]) l(lane) cross join lateral (
      (select r.due, r.id from ${s}.ready r where r.lane_id = l.lane and r.due <= ${clock} order by r.due, r.id limit $2::int)
      union all
      (select r.due, r.id from ${s}.ready_ordered r where r.lane_id = l.lane and r.due <= ${clock} and ${openHead(s)}
        order by r.due, r.seq, r.id limit $2::int)) d
    order by d.due, d.id limit $2::int`,
  );

/** Parameter: lanes. */
export const dueCountSql = (s: string) =>
  perClock(
    (clock) => `select l.lane::text, ((select count(*) from ${s}.ready r where r.lane_id = l.lane and r.due <= ${clock})
      + (select count(*) from ${s}.ready_ordered r where r.lane_id = l.lane and r.due <= ${clock} and ${openHead(s)}))::text
    from unnest($1::int[]) l(lane)`,
  );
