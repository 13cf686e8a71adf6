import { isUuid } from "../../../platform/ids.js";
import { OUTCOME_NAMES, RESOLUTION_NAMES } from "../db.js";
import { fromEpoch, messageView, viewSql } from "./view.js";
const attemptsSql = (s) => `select n::text, outcome::text, counted::text, extract(epoch from at)::text, duration_ms::text, code, error,
    case when next_due < 'infinity' then extract(epoch from next_due)::text end
  from ${s}.attempt where message_id = $1::uuid order by lease_id`;
const provenanceSql = (s) => `select extract(epoch from at)::text, actor, action, reason from ${s}.provenance where message_id = $1::uuid order by id`;
const deliveredSql = (s) => `union all
    select m.lane_id, 'delivered', null, count(*), null from ${s}.attempt a cross join lateral (
      select lane_id from (select id, lane_id from ${s}.message where id = a.message_id union all
        select id, lane_id from ${s}.message_kept where id = a.message_id) m limit 1) m
    where a.outcome in (1, 2) group by m.lane_id`;
const countsSql = (s, delivered) => `select t.name, c.status, c.resolution::text, sum(c.n)::text, (extract(epoch from (statement_timestamp() - min(c.since))) * 1000)::bigint::text
  from (
    select lane_id, 'pending' as status, null::int as resolution, count(*) as n, min(due) filter (where due < 'infinity') as since from ${s}.ready group by lane_id
    union all
    select lane_id, 'pending', null, count(*), min(due) filter (where due < 'infinity') from ${s}.ready_ordered group by lane_id
    union all
    select u.lane_id, 'processing', null, count(*), null from ${s}.lease l cross join lateral unnest(l.ids, l.lanes) u(id, lane_id)
      where not exists (select from ${s}.attempt a where a.message_id = u.id and a.lease_id = l.id) group by 1
    union all
    select lane_id, 'dead', resolution, count(*), min(died_at) from ${s}.dead_letter where resolution < 3 group by lane_id, resolution
    ${delivered ? deliveredSql(s) : ""}) c
  join ${s}.lane l on l.id = c.lane_id join ${s}.topic t on t.id = l.topic_id
  group by t.name, c.status, c.resolution order by 1, 2, 3`;
export function createReads(db) {
    const { connection, s } = db;
    const read = (text, values) => connection.rows("read", text, values, { reads: true });
    return {
        async get(id) {
            if (!isUuid(id))
                return null;
            const [row] = await read(viewSql(s), [[id]]);
            return row ? messageView(row) : null;
        },
        async history(id) {
            if (!isUuid(id))
                return { attempts: [], provenance: [] };
            const attempts = (await read(attemptsSql(s), [id])).map((row) => ({
                attempt: Number(row[0]),
                outcome: OUTCOME_NAMES[Number(row[1])],
                counted: row[2] === "true",
                at: fromEpoch(row[3]),
                durationMs: row[4] === null ? null : Number(row[4]),
                code: row[5],
                error: row[6],
                nextDueAt: fromEpoch(row[7]),
            }));
            const provenance = (await read(provenanceSql(s), [id])).map(([at, actor, action, reason]) => ({
                at: fromEpoch(at),
                actor: actor,
                action: action,
                reason: reason,
            }));
            return { attempts, provenance };
        },
        async counts({ delivered = false } = {}) {
            return (await read(countsSql(s, delivered), [])).map(([topic, status, resolution, count, oldest]) => ({
                topic: topic,
                status: status,
                resolution: resolution === null ? null : (RESOLUTION_NAMES[Number(resolution)] ?? null),
                count: Number(count),
                oldestMs: oldest === null ? null : Math.max(0, Number(oldest)),
            }));
        },
    };
}
//# sourceMappingURL=read.js.map