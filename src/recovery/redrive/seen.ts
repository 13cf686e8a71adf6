/**
 * What a preview saw, as PostgreSQL knows it: the snapshot of its statement. Every death, and every one that comes to a group, keeps the
 * transaction that wrote it, so one that committed later was not seen, also with an earlier time.
 */
import { readSeen, type SeenMark } from "./seen-mark.ts";

const SNAPSHOT = /^(\d{1,19}):(\d{1,19}):((?:\d{1,19}(?:,\d{1,19})*)?)$/;

/** Null: nothing is asked for. Throws `invalid_request` for what the server would not read. */
export function readSnapshotMark(seen: string | undefined): SeenMark | null {
  return seen === undefined ? null : readSeen(seen, isSnapshot);
}

function isSnapshot(position: string): boolean {
  const [, first, end, running] = SNAPSHOT.exec(position) ?? [];
  if (first === undefined || end === undefined || running === undefined) return false;
  const ids = [first, ...(running === "" ? [] : running.split(",")), end].map(BigInt);
  const inOrder = ids.every((id, i) => i === 0 || id >= (ids[i - 1] as bigint));
  return inOrder && (ids[0] as bigint) > 0n && (running === "" || (ids.at(-2) as bigint) < (ids.at(-1) as bigint));
}

/**
 * Conditions on `dead_letter d`; `xid`: the column that says who wrote it. A transaction that this server has not come to yet is of
 * another server's life, from before a restore: long ago.
 */
export function seenBy({ position, last }: SeenMark, xid: string, param: (value: unknown) => string): string[] {
  const visible = `(pg_visible_in_snapshot(${xid}, ${param(position)}::pg_snapshot) or ${xid} >= pg_snapshot_xmax(pg_current_snapshot()))`;
  if (last === null) return [visible];
  const at = `timestamptz 'epoch' + ${param(last.diedUs)}::bigint * interval '1 microsecond'`;
  return [visible, `(d.died_at, d.id) <= (${at}, ${param(last.id)}::uuid)`];
}

/** The id of a group, or of the one it was merged into; none where that is not the group that was seen. */
export function rootAsSeen(s: string, mark: SeenMark | null, groupId: string, param: (value: unknown) => string): string {
  const group = mark?.group;
  const root = `select coalesce(g.merged_into, g.id) from ${s}.recovery_group g where g.id = ${groupId}::bigint`;
  if (!group) return `(${root})`;
  return `(select r.id from ${s}.recovery_group r where r.id = (${root}) and r.id = ${param(group.id)}::bigint and r.version = ${param(group.version)}::int)`;
}

/** `id.version`, as a preview reads it. */
export function groupSeen(text: string | null | undefined): SeenMark["group"] {
  const [id, version] = text?.split(".") ?? [];
  return id === undefined ? null : { id: Number(id), version: Number(version) };
}

/** `microseconds.id` of the last death of a list. */
export function lastSeen(text: string | null | undefined): SeenMark["last"] {
  const [diedUs, id] = text?.split(".") ?? [];
  return diedUs === undefined || id === undefined ? null : { diedUs, id };
}
