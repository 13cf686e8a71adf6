/**
 * Where a message stands, read in one snapshot: its state is where its row is. In `ready` it is pending, an attempt that
 * delivered makes it delivered, an unreplayed dead letter makes it dead, and what is left is under a lease.
 */

import type { MessageView, Status } from "../../../message/message.ts";
import { fromEpoch } from "../../shared/clock-sql.ts";
import type { Row } from "../connection.ts";
import { RESOLUTION_NAMES } from "../db.ts";

/** $1: ids. */
export const viewSql = (
  s: string,
  payload = true,
) => `select m.id::text, t.name, l.tenant, m.key, m.ordering_key, l.priority::text, ${payload ? "m.payload" : "''"}, m.traceparent, m.schema_version::text,
    extract(epoch from m.created_at)::text,
    case when p.id is not null then 'pending' when a.delivered then 'delivered' when d.resolution < 3 then 'dead' else 'processing' end,
    case when p.id is not null then p.attempts when d.resolution < 3 and not coalesce(a.delivered, false) then d.attempts
      when a.delivered then a.attempts else a.attempts + 1 end::text,
    coalesce(d.generation, 0)::text, coalesce(d.revision, 0)::text,
    case when p.due < 'infinity' then extract(epoch from p.due)::text end, h.reason,
    case when d.resolution < 3 then extract(epoch from d.died_at)::text end, case when d.resolution < 3 then d.resolution::text end, a.error, a.code
  from unnest($1::uuid[]) x(id)
  cross join lateral (
    select * from (select * from ${s}.message m where m.id = x.id union all select * from ${s}.message_kept m where m.id = x.id) m limit 1) m
  join ${s}.lane l on l.id = m.lane_id join ${s}.topic t on t.id = l.topic_id
  left join lateral (
    select r.id, r.due, r.attempts from ${s}.ready r where r.id = x.id
    union all select o.id, o.due, o.attempts from ${s}.ready_ordered o where o.id = x.id) p on true
  left join ${s}.dead_letter d on d.id = x.id
  left join ${s}.held h on h.id = x.id
  cross join lateral (
    select bool_or(outcome in (1, 2)) as delivered, coalesce(max(n) filter (where counted), 0) as attempts,
      (array_agg(error order by lease_id desc) filter (where outcome > 2))[1] as error,
      (array_agg(code order by lease_id desc) filter (where outcome > 2))[1] as code
    from ${s}.attempt a where a.message_id = x.id) a
  order by m.id desc`;

export function messageView(row: Row): MessageView {
  return {
    id: row[0] as string,
    topic: row[1] as string,
    tenantId: row[2] === "" ? null : (row[2] as string),
    key: row[3] as string | null,
    orderingKey: row[4] as string | null,
    priority: Number(row[5]),
    payload: row[6] as string,
    traceparent: row[7] as string | null,
    schemaVersion: row[8] === null ? null : Number(row[8]),
    createdAt: fromEpoch(row[9]) as Date,
    status: row[10] as Status,
    attempts: Number(row[11]),
    generation: Number(row[12]),
    revision: Number(row[13]),
    nextAttemptAt: fromEpoch(row[14]),
    heldReason: row[15] as string | null,
    diedAt: fromEpoch(row[16]),
    resolution: row[17] === null ? null : (RESOLUTION_NAMES[Number(row[17])] ?? null),
    lastError: row[18] as string | null,
    lastCode: row[19] as string | null,
  };
}
