/**
 * RESOLVE: a person says that a kind of failure is mended, in a version or for good. Suggestions end with it, and so do the failures that
 * others reported; of what fails later, the write that counts it decides whether it brings the group back.
 */
import type { Home, Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import { lockGroups } from "../failures/ingest-sql.ts";
import { line, type NewProvenance } from "../provenance.ts";
import { record } from "../provenance-sql.ts";
import type { Actor } from "../recovery.ts";
import { membersOf, OPEN_IN_GROUP } from "../rows.ts";
import type { Group } from "./group.ts";
import type { GroupChanged } from "./group-changes.ts";
import { readGroup } from "./groups-sql.ts";
import { changeable, endCandidate, take } from "./regroup-sql.ts";

export interface GroupResolve {
  readonly groupId: number;
  /** Null: whatever fails next brings it back. */
  readonly inVersion: string | null;
  readonly reason: string;
  readonly by: Actor;
}

async function resolve(s: string, run: Run, { groupId, inVersion, reason, by }: GroupResolve): Promise<GroupChanged> {
  if (!Number.isSafeInteger(groupId)) return { kind: "not_found", groupId };
  const { now } = await lockGroups(s, run, [String(groupId)], undefined);
  const taken = await take(s, run, groupId);
  if (!taken) return { kind: "not_found", groupId };
  if (!changeable(taken)) return { kind: "wrong_state", group: taken.group };
  const resolved = line("resolved", by, { groupId, reason, details: { in_version: inVersion } });
  await endCandidate(s, run, taken, resolved, `its group was resolved: ${reason}`, now);
  await run(
    `update ${s}.recovery_group g set
        reports_closed = greatest(g.reports_closed, coalesce((select max(o.id) from ${s}.recovery_occurrence o where o.group_id = g.id), 0)),
        resolved_in = $2, resolved_by = $3, resolved_at = ${clockSql(now)}, regressed_in = null, regressed_at = null, version = g.version + 1
      where g.id = $1::bigint or g.merged_into = $1::bigint`,
    [groupId, inVersion, by.actor],
  );
  await record(s, run, [resolved], { now });
  return { kind: "done", group: (await readGroup(s, run, groupId)) as Group };
}

/** Resolved groups that failures of this write bring back, with the version of the first; on record with the candidate of the new round. */
export async function bringBack(
  s: string,
  run: Run,
  back: ReadonlyMap<
    string,
    { readonly version: string | null; readonly resolvedIn: string | null; readonly candidateId: number | null }
  >,
  now: Date,
): Promise<void> {
  if (back.size === 0) return;
  const text = `update ${s}.recovery_group g set regressed_at = ${clockSql(now)}, regressed_in = x.version
    from unnest($1::bigint[], $2::text[]) x(id, version) where g.id = x.id`;
  await run(text, [[...back.keys()], [...back.values()].map(({ version }) => version)]);
  const lines = [...back].map(([group, { version, resolvedIn, candidateId }]): NewProvenance => {
    const details = { version, resolved_in: resolvedIn };
    const reason = `it was resolved${resolvedIn === null ? "" : ` in ${resolvedIn}`} and failed again${version === null ? "" : ` in ${version}`}`;
    return line("regression", { actor: "system", actorType: "system" }, { groupId: Number(group), candidateId, reason, details });
  });
  await record(s, run, lines, { now });
}

export function createResolve(home: Home) {
  const { s } = home;
  return {
    resolveGroup: (request: GroupResolve) => home.transaction("resolve a group", ({ run }) => resolve(s, run, request)),
    /** The next open dead letters of a group; returns how many there were. */
    resolveLetters: (groupId: number, limit: number, by: { readonly actor: string; readonly reason: string }) =>
      home.transaction("resolve dead letters", async ({ run, intervene }) => {
        const text = `select d.id::text, d.revision::text from ${membersOf(s, "$1::bigint")} x join ${s}.dead_letter d on d.group_id = x.id
          and ${OPEN_IN_GROUP} order by d.id limit $2::int`;
        const named = (await run(text, [groupId, limit])).map(([id, revision]) => ({
          id: id as string,
          revision: Number(revision),
        }));
        if (named.length > 0) await intervene("resolve", named, by, {});
        return named.length;
      }),
  };
}
