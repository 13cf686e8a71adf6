/**
 * MERGE, SPLIT, MOVE and RESOLVE. The rows of the groups are taken, lower id first, so an ingest that is under way is counted before or
 * after, never in between; counts go along, none is lost, none is counted twice.
 */
import type { Home, Inside, Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import type { At } from "../../store/store.ts";
import type { Candidate } from "../candidates/candidate.ts";
import { isClosed, isExecuting } from "../candidates/candidate-state.ts";
import { type DocumentWrite, putDocument } from "../documents.ts";
import { latestOf, lockGroups, makeGroups, makeMatches } from "../failures/ingest-sql.ts";
import { line, type NewProvenance, record, SYSTEM } from "../provenance.ts";
import type { Actor, ResolveRequest } from "../recovery.ts";
import { membersOf, OPEN_IN_GROUP } from "../rows.ts";
import type { Group, GroupIdentity } from "./group.ts";
import { readGroup } from "./groups-sql.ts";

/** In one write: the change, the rule for the future and the lines of provenance. */
export interface GroupChange extends At {
  readonly document?: DocumentWrite | undefined;
  readonly provenance: readonly NewProvenance[];
}

export type GroupChanged =
  | { readonly kind: "done"; readonly group: Group }
  | { readonly kind: "not_found"; readonly groupId: number }
  /** Its candidate is executing or unknown, it is merged into another already, or it is named twice: nothing changed. */
  | { readonly kind: "wrong_state"; readonly group: Group }
  | { readonly kind: "version_conflict" };

const known = (ids: readonly number[]): string[] => ids.filter(Number.isSafeInteger).map(String);

/** Has the groups' latest candidates, and says which group to answer with. */
type Work = (candidates: readonly (Candidate | null)[], now: Date) => Promise<number>;

async function change(s: string, run: Run, ids: readonly number[], request: GroupChange, work: Work): Promise<GroupChanged> {
  const { document, provenance } = request;
  const { now } = await lockGroups(s, run, known(ids), request.now);
  const latest = await latestOf(s, run, known(ids));
  const candidates = ids.map((groupId) => latest.get(String(groupId))?.candidate ?? null);
  const groups: Group[] = [];
  for (const groupId of ids) {
    const group = await readGroup(s, run, groupId);
    if (!group) return { kind: "not_found", groupId };
    groups.push(group);
  }
  const taken = groups.find(({ mergedInto, groupId }, i) => {
    const candidate = candidates[i];
    return mergedInto !== null || (candidate && isExecuting(candidate)) || ids.indexOf(groupId) !== i;
  });
  if (taken) return { kind: "wrong_state", group: taken };
  if (document && (await putDocument(s, run, document, { now })).kind !== "done") return { kind: "version_conflict" };
  const groupId = await work(candidates, now);
  await record(s, run, provenance, { now });
  return { kind: "done", group: (await readGroup(s, run, groupId)) as Group };
}

type Merge = GroupChange & { readonly from: number; readonly into: number };

const merge = (s: string, run: Run, request: Merge) =>
  change(s, run, [request.from, request.into], request, async ([candidate], now) => {
    await endCandidate(s, run, candidate, request.provenance[0] ?? SYSTEM, `merged into group ${request.into}`, now);
    await run(
      `with f as (update ${s}.recovery_group g set merged_into = $2::bigint, version = g.version + (g.id = $1::bigint)::int, open = 0
          where g.id = $1::bigint or g.merged_into = $1::bigint)
        update ${s}.recovery_group g set occurrences = g.occurrences + f.occurrences, open = g.open + f.open, first_at = least(g.first_at, f.first_at),
          last_at = greatest(g.last_at, f.last_at), held_by = coalesce(g.held_by, f.held_by), version = g.version + 1,
          resolved_at = case when f.resolved_at is not null and f.regressed_at is null then g.resolved_at end
        from ${s}.recovery_group f where g.id = $2::bigint and f.id = $1::bigint`,
      [request.from, request.into],
    );
    return request.into;
  });

/** The open candidate of a group that becomes part of another, or is resolved, has nothing left to be about. */
async function endCandidate(s: string, run: Run, candidate: Candidate | null | undefined, by: Actor, reason: string, now: Date) {
  if (!candidate || isClosed(candidate)) return;
  const approved = candidate.decision === "approved";
  await run(
    `update ${s}.recovery_candidate set ${approved ? "execution_status = 'skipped'" : "decision = 'rejected'"}, version = version + 1,
      updated_at = ${clockSql(now)} where id = $1::bigint`,
    [candidate.candidateId],
  );
  const { candidateId, groupId, selectedAction: action } = candidate;
  const ended = line(approved ? "skipped" : "rejected", by, { candidateId, groupId, action, reason });
  await record(s, run, [ended], { now });
}

type Split = GroupChange & { readonly groupId: number; readonly identity: GroupIdentity };

async function split(s: string, run: Run, request: Split): Promise<GroupChanged> {
  const { groupId, identity } = request;
  const [found] = await run(
    `select id::text from (select 1 as o, id from ${s}.recovery_group where fingerprint = $1
      union all select 2, group_id from ${s}.recovery_match where match_id = $2) x order by o limit 1`,
    [identity.fingerprint, identity.failureMatchId],
  );
  const ids = [groupId, ...(found ? [Number(found[0])] : [])];
  return change(s, run, ids, request, async (_, now) => {
    await run(`update ${s}.recovery_group set version = version + 1 where id = any ($1::bigint[])`, [ids]);
    if (ids[1] !== undefined) return ids[1];
    const root = (await makeGroups(s, run, [identity], now)).get(identity.fingerprint)?.root as string;
    await makeMatches(s, run, new Map([[identity.failureMatchId, root]]));
    const ended = `update ${s}.recovery_group g set reports_closed = f.reports_closed from ${s}.recovery_group f where g.id = $1::bigint and f.id = $2::bigint`;
    await run(ended, [root, groupId]);
    return Number(root);
  });
}

/** $1 source, $2 target, $3 occurrences (of the source or what was merged into it), $4 how the source reads from now on, or null. */
const moveSql = (s: string) => `with m as (
    update ${s}.recovery_occurrence o set group_id = $2::bigint
    where o.id = any ($3::bigint[]) and o.group_id in (select x.id from ${membersOf(s, "$1::bigint")} x)
    returning o.at, o.message_id, o.attempts),
  d as (update ${s}.dead_letter d set group_id = $2::bigint, grouped_xid = pg_current_xact_id() from m
    where d.id = m.message_id and d.attempts = m.attempts and d.ingested_attempts = d.attempts),
  n as (select count(*) as n, min(at) as first_at, max(at) as last_at from m),
  f as (update ${s}.recovery_group g set occurrences = g.occurrences - n.n, template = coalesce($4::text, g.template) from n
    where g.id = $1::bigint and (n.n > 0 or $4::text is not null)),
  t as (update ${s}.recovery_group g set occurrences = g.occurrences + n.n,
    first_at = case when g.occurrences = 0 then n.first_at else least(g.first_at, n.first_at) end,
    last_at = case when g.occurrences = 0 then n.last_at else greatest(g.last_at, n.last_at) end from n where g.id = $2::bigint and n.n > 0)
  select n::text from n`;

type Moving = At & { readonly left?: string | undefined };

async function move(s: string, run: Run, from: number, to: number, ids: readonly number[], at: Moving): Promise<number> {
  const { rootOf } = await lockGroups(s, run, known([from, to]), at.now);
  const [source, target] = [rootOf.get(String(from)), rootOf.get(String(to))];
  if (!source || !target || source === target) return 0;
  const [row] = await run(moveSql(s), [source, target, known(ids), at.left ?? null]);
  return Number(row?.[0] ?? 0);
}

function resolve(s: string, run: Run, groupId: number, request: ResolveRequest): Promise<GroupChanged> {
  const { inVersion = null, reason } = request;
  const provenance = [line("resolved", request, { groupId, reason, details: { in_version: inVersion } })];
  return change(s, run, [groupId], { provenance }, async ([candidate], now) => {
    await endCandidate(s, run, candidate, request, `its group was resolved: ${reason}`, now);
    await run(
      `update ${s}.recovery_group g set
          reports_closed = greatest(g.reports_closed, coalesce((select max(o.id) from ${s}.recovery_occurrence o where o.group_id = g.id), 0)),
          resolved_in = $2, resolved_by = $3, resolved_at = ${clockSql(now)}, regressed_in = null, regressed_at = null, version = g.version + 1
        where g.id = $1::bigint or g.merged_into = $1::bigint`,
      [groupId, inVersion, request.actor],
    );
    return groupId;
  });
}

/** How many dead letters are resolved in one write. */
const AT_ONCE = 500;

async function resolveLetters(s: string, { run, intervene }: Inside, groupId: number, limit: number, by: ResolveRequest) {
  const text = `select d.id::text, d.revision::text from ${membersOf(s, "$1::bigint")} x join ${s}.dead_letter d on d.group_id = x.id
    and ${OPEN_IN_GROUP} order by d.id limit $2::int`;
  const named = (await run(text, [groupId, limit])).map(([id, revision]) => ({ id: id as string, revision: Number(revision) }));
  if (named.length > 0) await intervene("resolve", named, by, {});
}

export function createGroupWrites(home: Home) {
  const { s } = home;
  return {
    /** `from`, and what was merged into it, becomes part of `into`; counts are added up, a hold goes over, approvals of both lapse. */
    merge: (request: Merge) => home.transaction("merge groups", ({ run }) => merge(s, run, request)),
    /** Makes (or finds) the group of `identity`; `moveOccurrences` brings over what belongs there, `reopen` gives it its first candidate. */
    split: (request: Split) => home.transaction("split a group", ({ run }) => split(s, run, request)),
    /** Returns how many moved; supplied match ids stay where they are. `left`: what a group shows whose own template left. */
    moveOccurrences: (from: number, to: number, ids: readonly number[], at: Moving = {}) =>
      home.transaction("move occurrences", ({ run }) => move(s, run, from, to, ids, at)),
    /** Suggestions and reported failures end with it. Asked for again after a kill, it resolves the dead letters that are left. */
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
