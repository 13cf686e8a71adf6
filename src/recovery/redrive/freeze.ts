/**
 * PREVIEW and START: which open dead letters a selection means, oldest death first, and the frozen list of them. By group it reads the
 * index of open, ingested dead letters alone; otherwise that of open ones.
 */

import { isUuid } from "../../platform/ids.ts";
import type { Home, Run } from "../../store/home.ts";
import { clockSql, epoch, fromEpoch } from "../../store/shared/clock-sql.ts";
import type { At } from "../../store/store.ts";
import { beginObserving, byPerson } from "../confidence/outcomes-sql.ts";
import { record } from "../provenance-sql.ts";
import { membersOf, OPEN_IN_GROUP } from "../rows.ts";
import type { NewRedrive, Redrive, RedrivePreview, RedriveSelect, RedriveStarted } from "./redrive.ts";
import { keptSelect, SKIPPED, writtenSelect } from "./redrive.ts";
import { LIST_MS_MAX, REDRIVE_COLUMNS, readRedrive, redriveOf } from "./rows.ts";
import { groupSeen, lastSeen, readSnapshotMark, rootAsSeen, seenBy } from "./seen.ts";
import { seenText } from "./seen-mark.ts";

/**
 * Parameters are added to `values`; yields id, generation, revision, died_at, group_id, topic, tenant. Of a group and each that was merged
 * into it the oldest are read, no more than asked for.
 */
function selectSql(s: string, select: RedriveSelect, values: unknown[]): string {
  const param = (value: unknown) => `$${values.push(value)}`;
  const where = ["d.resolution = 0"];
  const mark = readSnapshotMark(select.seen);
  const limit = `order by d.died_at, d.id limit ${param(Math.max(0, select.limit))}::bigint`;
  if (select.ids !== undefined) where.push(`d.id = any (${param(select.ids.filter(isUuid))}::uuid[])`);
  if (select.topic !== undefined) where.push(`t.name = ${param(select.topic)}`);
  if (select.tenantId !== undefined) where.push(`l.tenant = ${param(select.tenantId)}`);
  if (select.errorCode !== undefined) where.push(`d.code = ${param(select.errorCode)}`);
  if (mark) where.push(...seenBy(mark, select.groupId === undefined ? "d.died_xid" : "d.grouped_xid", param));
  const from = `${s}.dead_letter d join ${s}.lane l on l.id = d.lane_id join ${s}.topic t on t.id = l.topic_id`;
  const columns = "d.id, d.generation, d.revision, d.died_at";
  if (select.groupId === undefined) {
    return `select ${columns}, case when d.ingested_attempts = d.attempts then coalesce(k.merged_into, k.id) end as group_id, t.name as topic, l.tenant
      from ${from} left join ${s}.recovery_group k on k.id = d.group_id where ${where.join(" and ")} ${limit}`;
  }
  const groupId = Number.isSafeInteger(select.groupId) ? select.groupId : 0;
  const root = rootAsSeen(s, mark, param(groupId), param);
  return `select ${columns}, d.root as group_id, d.topic, d.tenant from ${membersOf(s, root)} x cross join lateral (
      select ${columns}, ${root} as root, t.name as topic, l.tenant from ${from}
      where d.group_id = x.id and ${OPEN_IN_GROUP} and ${where.join(" and ")} ${limit}) d ${limit}`;
}

/** The row of a preview that saw nothing has a mark and no topic. The last one is looked for only where the limit cut something off. */
async function preview(s: string, run: Run, select: RedriveSelect): Promise<RedrivePreview> {
  const values: unknown[] = [
    select.generationMax,
    Math.max(0, select.limit),
    Number.isSafeInteger(select.groupId) ? select.groupId : null,
  ];
  const text = `with q as materialized (${selectSql(s, select, values)})
    select t.topic, t.messages::text, t.over::text, t.oldest, (select count(distinct tenant) from q)::text,
      pg_current_snapshot()::text, (select r.id || '.' || r.version from ${s}.recovery_group g
        join ${s}.recovery_group r on r.id = coalesce(g.merged_into, g.id) where g.id = $3::bigint),
      case when sum(t.messages) over () >= $2::bigint then (select (extract(epoch from q.died_at) * 1000000)::bigint || '.' || q.id from q
        order by q.died_at desc, q.id desc limit 1) end
    from (select 1) x left join (
      select q.topic, count(*) as messages, count(*) filter (where q.generation >= $1::int) as over, ${epoch("min(q.died_at)")} as oldest
      from q group by q.topic) t on true order by t.messages desc, t.topic`;
  const found = await run(text, values, { patienceMs: LIST_MS_MAX });
  const rows = found.filter(([topic]) => topic !== null);
  const [, , , , , snapshot, group, last] = found[0] as (string | null)[];
  const sum = (column: number) => rows.reduce((total, row) => total + Number(row[column]), 0);
  const oldest = rows.length > 0 ? Math.min(...rows.map((row) => Number(row[3]))) : null;
  return {
    messages: sum(1),
    overGeneration: sum(2),
    topics: rows.map(([topic, messages]) => ({ topic: topic as string, messages: Number(messages) })),
    tenants: Number(rows[0]?.[4] ?? 0),
    oldestAt: oldest === null ? null : fromEpoch(String(oldest)),
    seen: select.seen ?? seenText({ position: snapshot as string, group: groupSeen(group), last: lastSeen(last) }),
  };
}

/** The list, and the redrive's counts of it, in one statement. */
async function freeze(s: string, run: Run, { redriveId: id, select }: NewRedrive, clock: string): Promise<Redrive> {
  const values: unknown[] = [id, select.generationMax];
  const text = `with q as materialized (${selectSql(s, select, values)}),
    i as (insert into ${s}.redrive_item (redrive_id, n, message_id, generation, revision, group_id, state, reason, ended_at)
      select $1::uuid, row_number() over (order by q.died_at, q.id), q.id, q.generation, q.revision, q.group_id, case when o.ver then 4 else 0 end,
        case when o.ver then '${SKIPPED.generationCap}' end, case when o.ver then ${clock} end
      from q cross join lateral (select q.generation >= $2::int as ver) o returning state)
    update ${s}.redrive r set selected = c.n, waiting = c.n - c.skipped, skipped = c.skipped
    from (select count(*) as n, count(*) filter (where state = 4) as skipped from i) c where r.id = $1::uuid returning ${REDRIVE_COLUMNS}`;
  const [row] = await run(text, values, { patienceMs: LIST_MS_MAX });
  return redriveOf(row as string[]);
}

/** The redrive carries the execution on; false: the candidate runs under another execution, or not any more. */
async function carryOn(s: string, run: Run, request: NewRedrive, clock: string): Promise<boolean> {
  const text = `update ${s}.recovery_candidate set redrive_id = $1, lease_until = null, version = version + 1, updated_at = ${clock}
    where id = $2::bigint and execution_status = 'executing' and execution_id = $3 returning 1`;
  return (await run(text, [request.redriveId, request.candidateId, request.executionId])).length > 0;
}

async function earlier(
  s: string,
  run: Run,
  { redriveId: id, idempotencyKey, requestHash }: NewRedrive,
): Promise<RedriveStarted | null> {
  const text = `select r.id::text, (r.request_hash = $3)::text from ${s}.redrive r where r.request_key = $2 or r.id = $1::uuid
    order by r.request_key = $2 desc nulls last limit 1`;
  const [row] = await run(text, [id, idempotencyKey, requestHash]);
  if (!row) return null;
  return { kind: row[1] === "true" ? "same" : "conflict", redrive: (await readRedrive(s, run, row[0] as string)) as Redrive };
}

async function start(s: string, run: Run, request: NewRedrive, { now }: At): Promise<RedriveStarted> {
  const clock = clockSql(now);
  const known = await earlier(s, run, request);
  if (known) return known;
  if (request.executionId !== undefined && !(await carryOn(s, run, request, clock))) return { kind: "lost" };
  const inserted = await run(
    `insert into ${s}.redrive (id, request_key, request_hash, status, mode, action, candidate_id, actor, reason, selection, plan, repair, created_at, started_at)
      values ($1::uuid, $2, $3, $4, $5, $6, $7::bigint, $8, $9, $10, $11, $12, ${clock}, case when $4 = 'running' then ${clock} end)
      on conflict do nothing returning 1`,
    [
      request.redriveId,
      request.idempotencyKey,
      request.requestHash,
      request.status,
      request.mode,
      request.action,
      request.candidateId,
      request.actor,
      request.reason,
      JSON.stringify(writtenSelect(keptSelect(request.select))),
      request.plan,
      request.repair ?? null,
    ],
  );
  // Another request came at the same moment: this one is undone and asked again, and then it is the second of the two.
  if (inserted.length === 0) throw Object.assign(new Error("a redrive of this key was started meanwhile"), { code: "40001" });
  const redrive = await freeze(s, run, request, clock);
  if (request.status === "running") await beginObserving(s, run, request.redriveId, byPerson(request.provenance), clock);
  await record(s, run, request.provenance, { now });
  return { kind: "started", redrive };
}

export function createRedriveStart(home: Home) {
  const { s } = home;
  return {
    preview: (select: RedriveSelect) => preview(s, home.read("preview a redrive"), select),
    start: (request: NewRedrive, at: At = {}) => home.transaction("start a redrive", ({ run }) => start(s, run, request, at)),
  };
}
