/**
 * The mark of what a preview saw, as text: the snapshot of its statement, the group as it was, and the last death where a limit cut the
 * rest off. Every death, and every one that comes to a group, keeps the transaction that wrote it, so one that committed later was not
 * seen, also with an earlier time.
 */
import { MakegoodError } from "../../message/errors.ts";

const CHARS_MAX = 65_536;
const SHAPE = /^([^;]+)(?:;g(\d{1,15})\.(\d{1,9}))?(?:;d(\d{1,18})\.([0-9a-f-]{36}))?$/;
const SNAPSHOT = /^(\d{1,19}):(\d{1,19}):((?:\d{1,19}(?:,\d{1,19})*)?)$/;

export type SeenMark = ReturnType<typeof readSeen>;

/** `group`: `id.version`; `last`: `microseconds.id`; each null where there is none. */
export function seenText(snapshot: string, group: string | null, last: string | null): string {
  return `${snapshot}${group === null ? "" : `;g${group}`}${last === null ? "" : `;d${last}`}`;
}

/** Throws `invalid_request` for what the server would not read. */
export function readSeen(text: unknown) {
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
export function seenBy({ snapshot, last }: SeenMark, xid: string, param: (value: unknown) => string): string[] {
  const visible = `(pg_visible_in_snapshot(${xid}, ${param(snapshot)}::pg_snapshot) or ${xid} >= pg_snapshot_xmax(pg_current_snapshot()))`;
  if (last === null) return [visible];
  const at = `timestamptz 'epoch' + ${param(last.diedUs)}::bigint * interval '1 microsecond'`;
  return [visible, `(d.died_at, d.id) <= (${at}, ${param(last.id)}::uuid)`];
}
