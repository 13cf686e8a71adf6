/**
 * GET, HISTORY, COUNTS: what people and programs look at. Counts cover what is not delivered: pending, processing and dead;
 * the delivered are counted by events as they happen, not by reading them all.
 */
import type { AttemptOutcome, AttemptRecord, MessageView, ProvenanceRecord, Status } from "../../../message/message.ts";
import { isUuid } from "../../../platform/ids.ts";
import { fromEpoch } from "../../shared/clock-sql.ts";
import type { StatusCount } from "../../store.ts";
import { type Db, OUTCOME_NAMES, RESOLUTION_NAMES } from "../db.ts";
import { messageView, viewSql } from "./view.ts";

const attemptsSql = (
  s: string,
) => `select n::text, outcome::text, counted::text, extract(epoch from at)::text, duration_ms::text, code, error,
    case when next_due < 'infinity' then extract(epoch from next_due)::text end
  from ${s}.attempt where message_id = $1::uuid order by lease_id`;

const provenanceSql = (s: string) =>
  `select extract(epoch from at)::text, actor, action, reason from ${s}.provenance where message_id = $1::uuid order by id`;

const deliveredSql = (s: string) => `union all
    select m.lane_id, 'delivered', null, count(*), min(array[a.message_id]) from ${s}.attempt a cross join lateral (
      select lane_id from (select id, lane_id from ${s}.message where id = a.message_id union all
        select id, lane_id from ${s}.message_kept where id = a.message_id) m limit 1) m
    where a.outcome in (1, 2) group by m.lane_id`;

/** The oldest is the one with the smallest id, because ids begin with a time; \`min(array[id])\` because there is no min(uuid) before PostgreSQL 18. */
const countsSql = (
  s: string,
  delivered: boolean,
) => `select c.topic, c.status, c.resolution::text, c.n::text, (extract(epoch from (statement_timestamp() - o.created_at)) * 1000)::bigint::text
  from (select t.name as topic, c.status, c.resolution, sum(c.n) as n, (min(c.oldest))[1] as oldest from (
    select lane_id, 'pending' as status, null::int as resolution, count(*) as n, min(array[id]) as oldest from ${s}.ready group by lane_id
    union all
    select lane_id, 'pending', null, count(*), min(array[id]) from ${s}.ready_ordered group by lane_id
    union all
    select u.lane_id, 'processing', null, count(*), min(array[u.id]) from ${s}.lease l cross join lateral unnest(l.ids, l.lanes) u(id, lane_id)
      where not exists (select from ${s}.attempt a where a.message_id = u.id and a.lease_id = l.id) group by 1
    union all
    select lane_id, 'dead', resolution, count(*), min(array[id]) from ${s}.dead_letter where resolution < 3 group by lane_id, resolution
    ${delivered ? deliveredSql(s) : ""}) c
    join ${s}.lane l on l.id = c.lane_id join ${s}.topic t on t.id = l.topic_id
    group by t.name, c.status, c.resolution) c
  left join lateral (select created_at from ${s}.message where id = c.oldest union all
    select created_at from ${s}.message_kept where id = c.oldest limit 1) o on true
  order by 1, 2, 3`;

export function createReads(db: Db) {
  const { connection, s } = db;
  const read = (text: string, values: unknown[]) => connection.rows("read", text, values, { reads: true });
  return {
    async get(id: string): Promise<MessageView | null> {
      if (!isUuid(id)) return null;
      const [row] = await read(viewSql(s), [[id]]);
      return row ? messageView(row) : null;
    },
    async history(id: string): Promise<{ attempts: AttemptRecord[]; provenance: ProvenanceRecord[] }> {
      if (!isUuid(id)) return { attempts: [], provenance: [] };
      const attempts = (await read(attemptsSql(s), [id])).map(
        (row): AttemptRecord => ({
          attempt: Number(row[0]),
          outcome: OUTCOME_NAMES[Number(row[1])] as AttemptOutcome,
          counted: row[2] === "true",
          at: fromEpoch(row[3]) as Date,
          durationMs: row[4] === null ? null : Number(row[4]),
          code: row[5] as string | null,
          error: row[6] as string | null,
          nextAttemptAt: fromEpoch(row[7]),
        }),
      );
      const provenance = (await read(provenanceSql(s), [id])).map(
        ([at, actor, action, reason]): ProvenanceRecord => ({
          at: fromEpoch(at) as Date,
          actor: actor as string,
          action: action as ProvenanceRecord["action"],
          reason: reason as string | null,
        }),
      );
      return { attempts, provenance };
    },
    async counts({ delivered = false }: { readonly delivered?: boolean | undefined } = {}): Promise<StatusCount[]> {
      return (await read(countsSql(s, delivered), [])).map(
        ([topic, status, resolution, count, oldest]): StatusCount => ({
          topic: topic as string,
          status: status as Status,
          resolution: resolution === null ? null : (RESOLUTION_NAMES[Number(resolution)] ?? null),
          count: Number(count),
          oldestMs: oldest === null ? null : Math.max(0, Number(oldest)),
        }),
      );
    },
  };
}
