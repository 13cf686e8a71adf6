/**
 * RECLAIM: takes over expired leases. Two statements, in this order: fence (a new token), then look. In one statement the look
 * would use a snapshot that may be older than a settle which just committed, and the message would be delivered and pending.
 */
import type { ClaimedMessage } from "../../../message/message.ts";
import { perClock } from "../../shared/clock-sql.ts";
import type { ReclaimRequest } from "../../store.ts";
import type { Db } from "../db.ts";
import { KIND_ORDERED, kindSays, type LaneInfo } from "../lane-table.ts";
import { FAILED, orderedSays } from "./claimed.ts";

const fenceSql = (s: string) =>
  perClock(
    // An array is made once; a plan may read "in (select … limit)" again for each lease, and take all of them.
    (clock) => `update ${s}.lease set token = gen_random_uuid(), owner = $1::text, until = ${clock} + $2::int * interval '1 ms'
    where id = any (array(select id from ${s}.lease where until < ${clock} order by until, id limit $3::int for update skip locked))
    returning id::text`,
  );

/** Those that would be taken. */
const expiredSql = (s: string) =>
  perClock((clock) => `select id::text from ${s}.lease where until < ${clock} order by until, lease.id limit $1::int`);

const lookSql = (s: string) => `select l.id::text, l.token::text, u.id::text, u.n::text, u.base::text, u.lane_id::text,
    coalesce(m.handed_down, k.handed_down)::text, coalesce(m.key, k.key), coalesce(m.ordering_key, k.ordering_key), l.suspicion::text,
    coalesce(m.traceparent, k.traceparent), coalesce(m.schema_version, k.schema_version)::text,
    exists (select from ${s}.order_lock o where o.id = u.id and o.failed)::text
  from ${s}.lease l cross join lateral unnest(l.ids, l.attempts, l.bases, l.lanes) u(id, n, base, lane_id)
  left join ${s}.message m on m.id = u.id left join ${s}.message_kept k on k.id = u.id
  where l.id = any ($1::bigint[]) and ($2::text is null or l.owner = $2::text)
    and not exists (select from ${s}.attempt a where a.message_id = u.id and a.lease_id = l.id)
  order by l.id`;

/** Leases in which everything was settled before their holder died: nothing to decide. */
const clearSql = (s: string) => `delete from ${s}.lease l where l.id = any ($1::bigint[]) and l.owner = $2::text and not exists (
    select from unnest(l.ids) u(id) where not exists (select from ${s}.attempt a where a.message_id = u.id and a.lease_id = l.id))`;

const NO_TOKEN = "00000000-0000-0000-0000-000000000000";

export function createReclaim(db: Db): (request: ReclaimRequest) => Promise<ClaimedMessage[]> {
  const fence = fenceSql(db.s);
  const expired = expiredSql(db.s);
  const look = lookSql(db.s);
  const clear = clearSql(db.s);

  return async function reclaim({ owner, leaseMs, limit, dryRun = false, now }) {
    const fenced = dryRun
      ? await db.connection.rows("reclaim", expired(now), [limit], { reads: true })
      : await db.connection.rows("reclaim", fence(now), [owner, leaseMs, limit]);
    if (fenced.length === 0) return [];
    const ids = fenced.map((row) => row[0]);
    const rows = await db.connection.rows("reclaim", look, [ids, dryRun ? null : owner], { reads: true });
    const found = new Set(rows.map((row) => row[0]));
    const empty = dryRun ? [] : ids.filter((id) => !found.has(id));
    if (empty.length > 0) await db.connection.rows("reclaim", clear, [empty, owner]);
    const lanes = await db.lanes.byId(rows.map((row) => Number(row[5])));
    return rows.map((row): ClaimedMessage => {
      const lane = lanes.get(Number(row[5])) as LaneInfo;
      return {
        id: row[2] as string,
        claim: { lease: row[0] as string, token: dryRun ? NO_TOKEN : (row[1] as string) },
        lane: row[5] as string,
        topic: lane.topic,
        tenantId: lane.tenant === "" ? null : lane.tenant,
        priority: lane.priority,
        key: row[7] as string | null,
        orderingKey: row[8] as string | null,
        payload: "",
        traceparent: row[10] as string | null,
        schemaVersion: row[11] === null ? null : Number(row[11]),
        attempt: Number(row[3]),
        base: Number(row[4]),
        handedDown: row[6] === "true",
        ...kindSays(lane.kind),
        ...(lane.kind === KIND_ORDERED && orderedSays(Number(row[9]) + (row[12] === "true" ? FAILED : 0))),
      };
    });
  };
}
