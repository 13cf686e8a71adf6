/**
 * MERGE, SPLIT and moving occurrences. The rows of both groups are taken, lower id first, so an ingest that is under way is counted before
 * or after, never in between; counts go along, none is lost, none is counted twice.
 */

import type { Home, Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import type { At } from "../../store/store.ts";
import type { Candidate } from "../candidates/candidate.ts";
import { isClosed, isExecuting } from "../candidates/candidate-state.ts";
import { putDocument } from "../documents.ts";
import { latestOf, lockGroups, makeGroups, makeMatches } from "../failures/ingest-sql.ts";
import { line, SYSTEM } from "../provenance.ts";
import { record } from "../provenance-sql.ts";
import type { Actor } from "../recovery.ts";
import { membersOf } from "../rows.ts";
import type { Group } from "./group.ts";
import type { GroupChanged, GroupMerge, GroupSplit } from "./group-changes.ts";
import { readGroup } from "./groups-sql.ts";

interface Taken {
  readonly group: Group;
  readonly candidate: Candidate | null;
}

export async function take(s: string, run: Run, groupId: number): Promise<Taken | null> {
  const group = await readGroup(s, run, groupId);
  if (!group) return null;
  return { group, candidate: (await latestOf(s, run, [String(groupId)])).get(String(groupId))?.candidate ?? null };
}

export const changeable = ({ group, candidate }: Taken): boolean =>
  group.mergedInto === null && !(candidate !== null && isExecuting(candidate));

const known = (ids: readonly number[]): string[] => ids.filter(Number.isSafeInteger).map(String);

async function merge(s: string, run: Run, request: GroupMerge): Promise<GroupChanged> {
  const { now } = await lockGroups(s, run, known([request.from, request.into]), request.now);
  const [from, into] = [await take(s, run, request.from), await take(s, run, request.into)];
  if (!from) return { kind: "not_found", groupId: request.from };
  if (!into) return { kind: "not_found", groupId: request.into };
  const closed = [from, into].find((one) => !changeable(one));
  if (closed || request.from === request.into) return { kind: "wrong_state", group: (closed ?? into).group };
  if (request.document && (await putDocument(s, run, request.document, { now })).kind !== "done") {
    return { kind: "version_conflict" };
  }
  await endCandidate(s, run, from, request.provenance[0], `merged into group ${request.into}`, now);
  await run(
    `with f as (update ${s}.recovery_group g set merged_into = $2::bigint, version = g.version + (g.id = $1::bigint)::int, open = 0
        where g.id = $1::bigint or g.merged_into = $1::bigint)
      update ${s}.recovery_group g set occurrences = g.occurrences + f.occurrences, open = g.open + f.open, first_at = least(g.first_at, f.first_at),
        last_at = greatest(g.last_at, f.last_at), held_by = coalesce(g.held_by, f.held_by), version = g.version + 1,
        resolved_at = case when f.resolved_at is not null and f.regressed_at is null then g.resolved_at end
      from ${s}.recovery_group f where g.id = $2::bigint and f.id = $1::bigint`,
    [request.from, request.into],
  );
  await record(s, run, request.provenance, { now });
  return { kind: "done", group: (await readGroup(s, run, request.into)) as Group };
}

/** The open candidate of a group that becomes part of another, or is resolved, has nothing left to be about. */
export async function endCandidate(
  s: string,
  run: Run,
  { candidate }: Taken,
  by: Actor | undefined,
  reason: string,
  now: Date,
): Promise<void> {
  if (!candidate || isClosed(candidate)) return;
  const approved = candidate.decision === "approved";
  await run(
    `update ${s}.recovery_candidate set ${approved ? "execution_status = 'skipped'" : "decision = 'rejected'"}, version = version + 1,
      updated_at = ${clockSql(now)} where id = $1::bigint`,
    [candidate.candidateId],
  );
  const { candidateId, groupId, selectedAction: action } = candidate;
  const ended = line(approved ? "skipped" : "rejected", by ?? SYSTEM, { candidateId, groupId, action, reason });
  await record(s, run, [ended], { now });
}

async function split(s: string, run: Run, request: GroupSplit): Promise<GroupChanged> {
  const { fingerprint, failureMatchId } = request.identity;
  const [found] = await run(
    `select id::text from (select 1 as o, id from ${s}.recovery_group where fingerprint = $1
      union all select 2, group_id from ${s}.recovery_match where match_id = $2) x order by o limit 1`,
    [fingerprint, failureMatchId],
  );
  const target = found ? Number(found[0]) : null;
  const { now } = await lockGroups(s, run, known([request.groupId, ...(target === null ? [] : [target])]), request.now);
  const taken = await take(s, run, request.groupId);
  if (!taken) return { kind: "not_found", groupId: request.groupId };
  if (!changeable(taken)) return { kind: "wrong_state", group: taken.group };
  const other = target === null ? null : await take(s, run, target);
  if (other && (target === request.groupId || !changeable(other))) return { kind: "wrong_state", group: other.group };
  if (request.document && (await putDocument(s, run, request.document, { now })).kind !== "done") {
    return { kind: "version_conflict" };
  }
  const raised = known([request.groupId, ...(target === null ? [] : [target])]);
  await run(`update ${s}.recovery_group set version = version + 1 where id = any ($1::bigint[])`, [raised]);
  const groupId = target ?? (await make(s, run, request, now));
  await record(s, run, request.provenance, { now });
  return { kind: "done", group: (await readGroup(s, run, groupId)) as Group };
}

async function make(s: string, run: Run, { groupId, identity }: GroupSplit, now: Date): Promise<number> {
  const root = (await makeGroups(s, run, [identity], now)).get(identity.fingerprint)?.root as string;
  await makeMatches(s, run, new Map([[identity.failureMatchId, root]]));
  const ended = `update ${s}.recovery_group g set reports_closed = f.reports_closed from ${s}.recovery_group f where g.id = $1::bigint and f.id = $2::bigint`;
  await run(ended, [root, groupId]);
  return Number(root);
}

/** $1 source, $2 target, $3 occurrences, $4 how the source reads from now on or null: those that are in the source or in what was merged into it. */
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

async function move(
  s: string,
  run: Run,
  from: number,
  to: number,
  ids: readonly number[],
  { now, left }: At & { readonly left?: string | undefined },
): Promise<number> {
  const { rootOf } = await lockGroups(s, run, known([from, to]), now);
  const [source, target] = [rootOf.get(String(from)), rootOf.get(String(to))];
  if (!source || !target || source === target) return 0;
  const [row] = await run(moveSql(s), [source, target, known(ids), left ?? null]);
  return Number(row?.[0] ?? 0);
}

export function createRegroup(home: Home) {
  const { s } = home;
  return {
    merge: (request: GroupMerge) => home.transaction("merge groups", ({ run }) => merge(s, run, request)),
    split: (request: GroupSplit) => home.transaction("split a group", ({ run }) => split(s, run, request)),
    /**
     * Returns how many moved: what is there already, or was never in `from`, is not counted. Supplied match ids stay where they are. With
     * `left`, a group whose own template left shows that one.
     */
    moveOccurrences: (from: number, to: number, ids: readonly number[], at: At & { readonly left?: string | undefined } = {}) =>
      home.transaction("move occurrences", ({ run }) => move(s, run, from, to, ids, at)),
  };
}
