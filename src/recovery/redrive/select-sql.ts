/** Which dead letters a selection means, oldest death first, which of them are left alone and why, and the mark of what was seen. */
import { MakegoodError } from "../../message/errors.ts";
import type { Carrier } from "../../message/topic.ts";
import { isUuid } from "../../platform/ids.ts";
import type { Run } from "../../store/home.ts";
import { columns, text } from "../columns.ts";
import { membersOf, OPEN_IN_GROUP } from "../rows.ts";
import { type RedriveMode, type RedriveSelect, SKIPPED, sends } from "./redrive.ts";

type Param = (value: unknown) => string;
const COLUMNS = "d.id, d.generation, d.revision, d.died_at, d.code";

/** Of `dead_letter d`, its lane `l` and its topic `t`. */
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

/** Of a group and each that was merged into it the oldest are read, by the index, and no more than asked for. */
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

const CARRIED = columns({
  messageId: text("i.message_id::text"),
  carrierId: text("i.carrier_id::text"),
  redriveId: text("i.redrive_id::text"),
});

/**
 * Which dead letters have a copy on its way to another receiver. Asked where such a message is to be sent itself: inside the write, after
 * its row was taken, which a transaction that sends a copy of it takes as well. `beside`: a carrier whose own copies, the same effect once
 * more, are none of it, or null. Delivered counts until the original is resolved, which
 * happens only to one that stands as it was copied. `offset 0`: each carrier is looked up by itself, and no table is read whole for many.
 */
export const carriedSql = (s: string, ids = "($1::uuid[])", beside = "$2::text") => `
  select distinct on (i.message_id) ${CARRIED.list} from ${s}.redrive_item i
  where i.message_id = any ${ids} and i.sent_at is not null and i.carrier_id is not null
    and exists (select from ${s}.redrive r where r.id = i.redrive_id and r.mode = 'copy' and coalesce(r.plan::json ->> 'carrier', '') is distinct from ${beside} offset 0)
    and case when exists (select from ${s}.attempt a where a.message_id = i.carrier_id and a.outcome in (1, 2) offset 0)
      then exists (select from ${s}.dead_letter d where d.id = i.message_id and d.resolution = 0 and d.revision = i.revision offset 0)
      else not exists (select from ${s}.dead_letter d where d.id = i.carrier_id and d.resolution < 3 offset 0)
        and (exists (select from ${s}.message m where m.id = i.carrier_id offset 0)
          or exists (select from ${s}.message_kept m where m.id = i.carrier_id offset 0)) end
  order by i.message_id, i.sent_at`;

export async function carriedAmong(s: string, run: Run, ids: readonly string[], beside: Carrier | null = null) {
  if (ids.length === 0) return [];
  return (await run(carriedSql(s), [ids, beside], { name: "mg_redrive_carried" })).map(CARRIED.of);
}

export function carriedError({ messageId, carrierId, redriveId }: ReturnType<typeof CARRIED.of>): MakegoodError {
  const said = `message ${messageId} is on its way to another receiver as message ${carrierId} (redrive ${redriveId}): wait until that is known, discard message ${carrierId}, or say force if both may get it`;
  return new MakegoodError("carried", said, { id: messageId, carrierId, redriveId });
}

/**
 * `q`: the selection, each with `why` it is left alone, or null. Only what would be sent is held back for its generation, or because a
 * copy of it is under way; whatever is done to a held group is for the person who holds it to say.
 */
export function listSql(
  s: string,
  select: RedriveSelect,
  mode: RedriveMode,
  carrier: Carrier | undefined,
  values: unknown[],
): string {
  const param: Param = (value) => `$${values.push(value)}`;
  const none = "select null::text as message_id where false";
  return `a as materialized (${selectSql(s, select, param)}),
    c as materialized (${sends(mode) ? carriedSql(s, "(select id from a)", `${param(carrier ?? null)}::text`) : none}),
    q as materialized (select a.*, case when a.generation >= ${param(select.generationMax)}::int then '${SKIPPED.generationCap}'
      when a.held and ${select.includeHeld !== true} then '${SKIPPED.held}'
      when exists (select from c where c.message_id = a.id::text) then '${SKIPPED.carried}' end as why from a)`;
}

/**
 * What a preview saw is the snapshot of its statement: every death, and every one that comes to a group, keeps the transaction that wrote
 * it, so one that committed later was not seen, also with an earlier time.
 */
const CHARS_MAX = 65_536;
const SHAPE = /^([^;]+)(?:;g(\d{1,15})\.(\d{1,9}))?(?:;d(\d{1,18})\.([0-9a-f-]{36}))?$/;
const SNAPSHOT = /^(\d{1,19}):(\d{1,19}):((?:\d{1,19}(?:,\d{1,19})*)?)$/;

type SeenMark = ReturnType<typeof readSeen>;

/** `group`: `id.version`; `last`: `microseconds.id`; each null where there is none. */
export function seenText(snapshot: string, group: string | null, last: string | null): string {
  return `${snapshot}${group === null ? "" : `;g${group}`}${last === null ? "" : `;d${last}`}`;
}

/** Throws `invalid_request` for what the server would not read. */
function readSeen(text: unknown) {
  const [, snapshot, group, version, diedUs, id] =
    (typeof text === "string" && text.length <= CHARS_MAX && SHAPE.exec(text)) || [];
  if (snapshot === undefined || !isSnapshot(snapshot)) {
    const detail = "is not a mark of ours: pass `seen` of the preview as it was, or leave it out";
    throw new MakegoodError("invalid_request", `seen ${detail}`, { errors: [{ field: "seen", detail }] });
  }
  return {
    snapshot,
    /** The group that was asked for (the one it was merged into, if it was); another version: it is not the same any more. */
    group: group === undefined ? null : { id: group, version },
    /** The last one of the list; what died after it was cut off. */
    last: diedUs === undefined ? null : { diedUs, id },
  };
}

function isSnapshot(text: string): boolean {
  const [, first, end, running] = SNAPSHOT.exec(text) ?? [];
  if (first === undefined || end === undefined || running === undefined) return false;
  const ids = [first, ...(running === "" ? [] : running.split(",")), end].map(BigInt);
  const inOrder = ids.every((id, i) => i === 0 || id >= (ids[i - 1] as bigint));
  return inOrder && (ids[0] as bigint) > 0n && (running === "" || (ids.at(-2) as bigint) < (ids.at(-1) as bigint));
}

/**
 * Conditions on `dead_letter d`; `xid`: the column that says who wrote it. A transaction that this server has not come to yet is of
 * another server's life, from before a restore: long ago.
 */
function seenBy({ snapshot, last }: SeenMark, xid: string, param: Param): string[] {
  const visible = `(pg_visible_in_snapshot(${xid}, ${param(snapshot)}::pg_snapshot) or ${xid} >= pg_snapshot_xmax(pg_current_snapshot()))`;
  if (last === null) return [visible];
  const at = `timestamptz 'epoch' + ${param(last.diedUs)}::bigint * interval '1 microsecond'`;
  return [visible, `(d.died_at, d.id) <= (${at}, ${param(last.id)}::uuid)`];
}
