/**
 * Which dead letters a selection means, oldest death first, and which of them are left alone and why. By group it reads the index of open,
 * ingested dead letters alone; otherwise that of open ones.
 */
import { isUuid } from "../../platform/ids.ts";
import { membersOf, OPEN_IN_GROUP } from "../rows.ts";
import { carriedSql } from "./carried.ts";
import { type RedriveMode, type RedriveSelect, SKIPPED, sends } from "./redrive.ts";
import { readSeen, type SeenMark, seenBy } from "./seen.ts";

type Param = (value: unknown) => string;
const COLUMNS = "d.id, d.generation, d.revision, d.died_at, d.code";

/** What is asked of `dead_letter d`, its lane `l` and its topic `t`. */
function conditions(s: string, select: RedriveSelect, mark: SeenMark | null, param: Param): string[] {
  const { groupId, groupIds, ids, topic, tenantId, errorCode, since, until } = select;
  const where = [select.redriveId === undefined ? "d.resolution = 0" : "d.resolution in (1, 2)"];
  if (ids !== undefined) where.push(`d.id = any (${param(ids.filter(isUuid))}::uuid[])`);
  if (topic !== undefined) where.push(`t.name = ${param(topic)}`);
  if (tenantId !== undefined) where.push(`l.tenant = ${param(tenantId)}`);
  if (errorCode !== undefined) where.push(`d.code = ${param(errorCode)}`);
  if (since !== undefined) where.push(`d.died_at >= ${param(since.toISOString())}::timestamptz`);
  if (until !== undefined) where.push(`d.died_at < ${param(until.toISOString())}::timestamptz`);
  if (mark) where.push(...seenBy(mark, groupId === undefined ? "d.died_xid" : "d.grouped_xid", param));
  if (groupId !== undefined || groupIds !== undefined) where.push(OPEN_IN_GROUP);
  if (groupIds !== undefined)
    where.push(`d.group_id = any (array(select m.id from ${s}.recovery_group m where coalesce(m.merged_into, m.id) = any (
      array(select coalesce(g.merged_into, g.id) from ${s}.recovery_group g where g.id = any (${param(groupIds)}::bigint[])))))`);
  return where;
}

/** The id of a group, or of the one it was merged into; none where that is not the group that was seen. */
function rootAsSeen(s: string, mark: SeenMark | null, groupId: number, param: Param): string {
  const group = mark?.group;
  const root = `select coalesce(g.merged_into, g.id) from ${s}.recovery_group g where g.id = ${param(groupId)}::bigint`;
  if (!group) return `(${root})`;
  return `(select r.id from ${s}.recovery_group r where r.id = (${root}) and r.id = ${param(group.id)}::bigint and r.version = ${param(group.version)}::int)`;
}

/**
 * Parameters are added to `values`; yields id, generation, revision, died_at, code, group_id, held, topic, tenant. Of a group and each that
 * was merged into it the oldest are read, no more than asked for.
 */
function selectSql(s: string, select: RedriveSelect, param: Param): string {
  const { groupId, redriveId } = select;
  const mark = select.seen === undefined ? null : readSeen(select.seen);
  const limit = `order by d.died_at, d.id limit ${param(Math.max(0, select.limit))}::bigint`;
  const where = conditions(s, select, mark, param).join(" and ");
  const from = `${s}.dead_letter d join ${s}.lane l on l.id = d.lane_id join ${s}.topic t on t.id = l.topic_id`;
  if (groupId !== undefined) {
    const root = rootAsSeen(s, mark, groupId, param);
    return `select ${COLUMNS}, d.root as group_id, d.held, d.topic, d.tenant from ${membersOf(s, root)} x cross join lateral (
      select ${COLUMNS}, ${root} as root, (select k.held_by is not null from ${s}.recovery_group k where k.id = ${root}) as held, t.name as topic, l.tenant
      from ${from} where d.group_id = x.id and ${where} ${limit}) d ${limit}`;
  }
  const undone =
    redriveId === undefined
      ? ""
      : `join ${s}.redrive_item u on u.redrive_id = ${param(redriveId)}::uuid and u.message_id = d.id
      and u.state in (1, 2) and d.revision = u.revision + 1`;
  return `select ${COLUMNS}, k.id as group_id, coalesce(k.held_by is not null, false) as held, t.name as topic, l.tenant
    from ${from} ${undone} left join ${s}.recovery_group g on g.id = d.group_id and d.ingested_attempts = d.attempts
    left join ${s}.recovery_group k on k.id = coalesce(g.merged_into, g.id) where ${where} ${limit}`;
}

/**
 * `q`: the selection, each with `why` it is left alone, or null. Only what would be sent is held back for its generation, or because a
 * copy of it is under way; whatever is done to a held group is for the person who holds it to say.
 */
export function listSql(
  s: string,
  select: RedriveSelect,
  { mode, carrier = null }: { readonly mode: RedriveMode; readonly carrier?: string | null | undefined },
  values: unknown[],
): string {
  const param: Param = (value) => `$${values.push(value)}`;
  const none = "select null::text as message_id where false";
  return `a as materialized (${selectSql(s, select, param)}),
    c as materialized (${sends(mode) ? carriedSql(s, "(select id from a)", `${param(carrier)}::text`) : none}),
    q as materialized (select a.*, case when a.generation >= ${param(select.generationMax)}::int then '${SKIPPED.generationCap}'
      when a.held and ${select.includeHeld !== true} then '${SKIPPED.held}'
      when exists (select from c where c.message_id = a.id::text) then '${SKIPPED.carried}' end as why from a)`;
}
