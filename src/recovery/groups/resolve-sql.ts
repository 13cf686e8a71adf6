/**
 * RESOLVE: a person says that a kind of failure is mended, in a version or for good. Suggestions end with it, and so do the failures that
 * others reported; of what fails later, the write that counts it decides whether it brings the group back. Its open dead letters are left, or
 * resolved some at a time: asked for again after its process was killed, it does what was left to do.
 */
import type { Home, Inside, Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import { lockGroups } from "../failures/ingest-sql.ts";
import { line, type NewProvenance, SYSTEM } from "../provenance.ts";
import { record } from "../provenance-sql.ts";
import type { ResolveRequest } from "../recovery.ts";
import { membersOf, OPEN_IN_GROUP } from "../rows.ts";
import type { Group } from "./group.ts";
import type { GroupChanged } from "./group-changes.ts";
import { readGroup } from "./groups-sql.ts";
import { changeable, endCandidate, take } from "./regroup-sql.ts";

const AT_ONCE = 500;

async function resolve(s: string, run: Run, groupId: number, request: ResolveRequest): Promise<GroupChanged> {
  const { inVersion = null, reason } = request;
  if (!Number.isSafeInteger(groupId)) return { kind: "not_found", groupId };
  const { now } = await lockGroups(s, run, [String(groupId)], undefined);
  const taken = await take(s, run, groupId);
  if (!taken) return { kind: "not_found", groupId };
  if (!changeable(taken)) return { kind: "wrong_state", group: taken.group };
  const resolved = line("resolved", request, { groupId, reason, details: { in_version: inVersion } });
  await endCandidate(s, run, taken, resolved, `its group was resolved: ${reason}`, now);
  await run(
    `update ${s}.recovery_group g set
        reports_closed = greatest(g.reports_closed, coalesce((select max(o.id) from ${s}.recovery_occurrence o where o.group_id = g.id), 0)),
        resolved_in = $2, resolved_by = $3, resolved_at = ${clockSql(now)}, regressed_in = null, regressed_at = null, version = g.version + 1
      where g.id = $1::bigint or g.merged_into = $1::bigint`,
    [groupId, inVersion, request.actor],
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
    return line("regression", SYSTEM, { groupId: Number(group), candidateId, reason, details });
  });
  await record(s, run, lines, { now });
}

/** The next open dead letters of a group; says how many there were. */
async function resolveLetters(
  s: string,
  { run, intervene }: Inside,
  groupId: number,
  limit: number,
  by: ResolveRequest,
): Promise<number> {
  const text = `select d.id::text, d.revision::text from ${membersOf(s, "$1::bigint")} x join ${s}.dead_letter d on d.group_id = x.id
    and ${OPEN_IN_GROUP} order by d.id limit $2::int`;
  const named = (await run(text, [groupId, limit])).map(([id, revision]) => ({ id: id as string, revision: Number(revision) }));
  if (named.length > 0) await intervene("resolve", named, by, {});
  return named.length;
}

export function createResolve(home: Home) {
  const { s } = home;
  return {
    async resolveGroup(groupId: number, request: ResolveRequest): Promise<GroupChanged> {
      const changed = await home.transaction("resolve a group", ({ run }) => resolve(s, run, groupId, request));
      if (request.messages !== "resolve" || changed.kind !== "done") return changed;
      // I10: what dies meanwhile is not part of it.
      for (let left = changed.group.openMessages; left > 0; left -= AT_ONCE) {
        const limit = Math.min(left, AT_ONCE);
        await home.transaction("resolve dead letters", (inside) => resolveLetters(s, inside, groupId, limit, request));
      }
      return { kind: "done", group: (await readGroup(s, home.read("read groups"), groupId)) as Group };
    },
  };
}
