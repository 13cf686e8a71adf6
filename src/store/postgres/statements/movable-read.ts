/**
 * MOVE, the reading side: pages by id over every place where a message can stand, each page one snapshot, so that none is missed while it
 * moves; then each of them with its lane, its place and its history.
 */
import type { AttemptOutcome, AttemptRecord, ProvenanceRecord, Resolution, Status } from "../../../message/message.ts";
import type { MovableMessage, MovablePage, MovableRead } from "../../movable.ts";
import { epoch, fromEpoch } from "../../shared/clock-sql.ts";
import type { Row } from "../connection.ts";
import { type Db, OUTCOME_NAMES, RESOLUTION_NAMES } from "../db.ts";
import { KIND_ORDERED, kindSays } from "../lane-table.ts";

const FIRST = "00000000-0000-0000-0000-000000000000";
/** As long as a page of large messages may take on a busy disk. */
const PATIENCE_MS = 120_000;

/** $1: after which id, $2: how many. Each with the size of its payload. */
const pageSql = (s: string, all: boolean) => {
  const part = (from: string, more = "") => `(select id from ${s}.${from} where id > $1${more} order by id limit $2::int)`;
  const flying = `(select u.id from ${s}.lease l cross join lateral unnest(l.ids) u(id) where u.id > $1
    and not exists (select from ${s}.attempt a where a.message_id = u.id and a.lease_id = l.id) order by u.id limit $2::int)`;
  const open = [part("ready"), part("ready_ordered"), part("dead_letter", " and resolution = 0"), flying];
  const parts = all ? [part("message"), part("message_kept")] : open;
  return `select c.id::text, b.bytes::text from (select id from (${parts.join(" union ")}) c order by id limit $2::int) c
    left join lateral (select octet_length(payload) as bytes from ${s}.message where id = c.id
      union all select octet_length(payload) from ${s}.message_kept where id = c.id limit 1) b on true order by c.id`;
};

/** $1: ids. */
const detailSql = (
  s: string,
) => `select m.id::text, t.name, l.tenant, m.key, m.ordering_key, l.priority::text, m.payload, m.traceparent,
    m.schema_version::text, ${epoch("m.created_at")}, (m.handed_down is true)::text, l.kind::text,
    case when p.id is not null then 'pending' when a.delivered then 'delivered' when d.resolution < 3 then 'dead' else 'processing' end,
    case when p.id is not null then p.attempts when d.resolution < 3 and not coalesce(a.delivered, false) then d.attempts
      when a.delivered then a.attempts else coalesce(g.n, a.attempts + 1) end::text,
    coalesce(p.base, g.base, 0)::text, coalesce(p.kind, g.kind, 0)::text, coalesce(p.suspicion, g.suspicion, 0)::text, coalesce(p.failed, k.failed, false)::text,
    case when p.due < 'infinity' then ${epoch("p.due")} end, h.reason, coalesce(p.seq, k.seq, d.seq, 0)::text, (k.id is not null)::text,
    coalesce(d.generation, 0)::text, coalesce(d.revision, 0)::text, d.resolution::text, ${epoch("d.died_at")}, ${epoch("d.settled_at")}, a.list, v.list
  from unnest($1::uuid[]) x(id)
  cross join lateral (
    select * from (select * from ${s}.message m where m.id = x.id union all select * from ${s}.message_kept m where m.id = x.id) m limit 1) m
  join ${s}.lane l on l.id = m.lane_id join ${s}.topic t on t.id = l.topic_id
  left join lateral (
    select r.id, r.due, r.attempts, r.base, n.kind, 0 as suspicion, false as failed, null::bigint as seq
      from ${s}.ready r join ${s}.lane n on n.id = r.lane_id where r.id = x.id
    union all select o.id, o.due, o.attempts, o.base, ${KIND_ORDERED}, o.suspicion, o.failed, o.seq from ${s}.ready_ordered o where o.id = x.id) p on true
  left join lateral (
    select u.n, u.base, n.kind, e.suspicion from ${s}.lease e cross join lateral unnest(e.ids, e.attempts, e.bases, e.lanes) u(id, n, base, lane_id)
      join ${s}.lane n on n.id = u.lane_id where x.id = any (e.ids) and u.id = x.id
      and not exists (select from ${s}.attempt a where a.message_id = x.id and a.lease_id = e.id) limit 1) g on true
  left join ${s}.dead_letter d on d.id = x.id
  left join ${s}.order_lock k on k.id = x.id
  left join ${s}.held h on h.id = x.id
  cross join lateral (
    select bool_or(outcome in (1, 2)) as delivered, coalesce(max(n) filter (where counted), 0) as attempts,
      json_agg(json_build_array(n, outcome, counted, ${epoch("at")}, duration_ms, code, error,
        case when next_due < 'infinity' then ${epoch("next_due")} end) order by lease_id)::text as list
    from ${s}.attempt a where a.message_id = x.id) a
  cross join lateral (
    select json_agg(json_build_array(${epoch("at")}, actor, action, reason) order by id)::text as list
    from ${s}.provenance v where v.message_id = x.id) v
  order by m.id`;

type AttemptList = [number, number, boolean, string, number | null, string | null, string | null, string | null][];
type ProvenanceList = [string, string, ProvenanceRecord["action"], string | null][];

const attemptsOf = (list: string | null): AttemptRecord[] =>
  (JSON.parse(list ?? "[]") as AttemptList).map(([attempt, outcome, counted, at, durationMs, code, error, next]) => ({
    attempt,
    outcome: OUTCOME_NAMES[outcome] as AttemptOutcome,
    counted,
    at: fromEpoch(at) as Date,
    durationMs,
    code,
    error,
    nextAttemptAt: fromEpoch(next),
  }));

const provenanceOf = (list: string | null): ProvenanceRecord[] =>
  (JSON.parse(list ?? "[]") as ProvenanceList).map(([at, actor, action, reason]) => ({
    at: fromEpoch(at) as Date,
    actor,
    action,
    reason,
  }));

/** In the order of the columns above. */
function movableOfRow(row: Row): MovableMessage {
  const [id, topic, tenant, key, orderingKey, priority, payload, traceparent, schema, created, handedDown, homeKind] = row;
  const [status, attempts, base, kind, suspicion, failed, due, heldReason, seq, locked, generation, revision] = row.slice(12);
  const [resolution, died, settled, attemptList, provenanceList] = row.slice(24);
  const ordered = Number(homeKind) === KIND_ORDERED;
  const waits = status === "pending" || status === "processing";
  const says = kindSays(Number(kind));
  const dead = status === "dead";
  const history = attemptsOf(attemptList as string | null);
  return {
    id: id as string,
    topic: topic as string,
    tenantId: tenant === "" ? null : (tenant as string),
    key: key as string | null,
    orderingKey: orderingKey as string | null,
    priority: Number(priority),
    payload: payload as string,
    traceparent: traceparent as string | null,
    schemaVersion: schema === null ? null : Number(schema),
    createdAt: fromEpoch(created) as Date,
    status: status as Status,
    attempts: Number(attempts),
    base: Number(base),
    generation: Number(generation),
    revision: Number(revision),
    suspicion: !waits ? 0 : ordered ? (Number(suspicion) as MovableMessage["suspicion"]) : says.suspicion,
    retried: waits && (ordered ? failed === "true" && suspicion === "0" : says.retried),
    handedDown: handedDown === "true",
    place: ordered ? Number(seq) : null,
    blocksOrder: dead && locked === "true",
    nextAttemptAt: fromEpoch(due),
    heldReason: heldReason as string | null,
    diedAt: dead ? fromEpoch(died) : null,
    resolution: dead ? (RESOLUTION_NAMES[Number(resolution)] as Resolution) : null,
    settledAt: settledAt(status as Status, history, dead ? fromEpoch(settled) : null),
    history,
    provenance: provenanceOf(provenanceList as string | null),
  };
}

function settledAt(status: Status, history: readonly AttemptRecord[], ended: Date | null): Date | null {
  if (status !== "delivered") return ended;
  return history.find(({ outcome }) => outcome === "delivered" || outcome === "duplicate")?.at ?? null;
}

const isSettled = ({ status, resolution }: MovableMessage): boolean =>
  status === "delivered" || (status === "dead" && resolution !== "open");

export function createMovableReads({ connection, s }: Db) {
  const rows = (text: string, values: unknown[]) =>
    connection.rows("read what is moved", text, values, { reads: true, patienceMs: PATIENCE_MS });
  const find = async (ids: readonly string[]) => (ids.length === 0 ? [] : (await rows(detailSql(s), [ids])).map(movableOfRow));

  async function read({ all, after = FIRST, limit, bytesMax }: MovableRead): Promise<MovablePage> {
    const found = await rows(pageSql(s, all), [after, limit]);
    const ids: string[] = [];
    let bytes = 0;
    for (const [id, size] of found) {
      bytes += Number(size ?? 0);
      if (ids.length > 0 && bytes > bytesMax) break;
      ids.push(id as string);
    }
    // Settled between the two statements: it is not asked for any more.
    const messages = (await find(ids)).filter((one) => all || !isSettled(one));
    return { messages, next: ids.length < found.length || found.length === limit ? (ids.at(-1) as string) : null };
  }
  return { read, find };
}
