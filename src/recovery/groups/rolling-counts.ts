/**
 * Counts that cost the same at any size: what was added up, and the changes since, which triggers write as rows of their own. Both are read
 * in one statement, so a number is exact at every moment; the job here only keeps the changes few. Two at once add up different ones.
 */
import { type JobTurn, led } from "../../platform/job.ts";
import type { Home, Inside } from "../../store/home.ts";
import { lockGroups } from "../failures/ingest-sql.ts";

/** Changes of open messages that are not added up yet, by the group that they count in. A lookup each: joined, all groups would be read. */
export const pendingOpen = (
  s: string,
) => `select coalesce((select m.merged_into from ${s}.recovery_group m where m.id = o.group_id), o.group_id) as id,
    sum(o.n) as n from (select group_id, sum(n) as n from ${s}.recovery_open group by 1) o group by 1`;

/** Names and sums: groups, occurrences, open (groups) and candidates by their states. */
export const tallySql = (s: string) => `select name, n from ${s}.recovery_tally
  union all select 'open', ((g.open + p.n > 0)::int - (g.open > 0)::int) from (${pendingOpen(s)}) p
    join ${s}.recovery_group g on g.id = p.id where g.merged_into is null`;

const BATCH = 20_000;
/** How long changes may gather before they are added up. */
const EVERY_MS = 5_000;

const takeSql = (s: string) => `with d as (delete from ${s}.recovery_open where ctid = any (array(
    select ctid from ${s}.recovery_open limit ${BATCH} for update skip locked)) returning group_id, n)
  select group_id::text, sum(n)::text, count(*)::text from d group by group_id`;

const tidySql = (s: string) => `with d as (delete from ${s}.recovery_tally where ctid = any (array(
    select ctid from ${s}.recovery_tally for update skip locked)) returning name, n)
  insert into ${s}.recovery_tally select name, sum(n) from d group by name having sum(n) <> 0`;

export function createRollingCounts(home: Home) {
  const { s } = home;

  /** How many changes were taken. */
  async function addOpen({ run }: Inside): Promise<number> {
    const taken = await run(takeSql(s));
    if (taken.length === 0) return 0;
    const groups = taken.map(([id]) => id as string);
    const { rootOf } = await lockGroups(s, run, groups);
    const roots = groups.map((id) => rootOf.get(id) ?? id);
    const text = `update ${s}.recovery_group g set open = g.open + x.n
      from (select id, sum(n) as n from unnest($1::bigint[], $2::bigint[]) x(id, n) group by id) x where g.id = x.id and x.n <> 0`;
    await run(text, [roots, taken.map(([, n]) => n)]);
    return taken.reduce((sum, [, , changes]) => sum + Number(changes), 0);
  }

  async function addUp(signal?: AbortSignal, { fence }: Pick<JobTurn, "fence"> = { fence: null }): Promise<void> {
    while ((await home.transaction("add up open messages", addOpen, fence)) >= BATCH) if (signal?.aborted) return;
    await home.transaction("add up counts", ({ run }) => run(tidySql(s)), fence);
  }
  return { addUp, addUpJob: led("recovery_counts", "adds up counts, so that they are quick to read", EVERY_MS, addUp) };
}
