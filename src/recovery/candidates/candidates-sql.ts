/** What is read of candidates: one, the latest of a group, pages by state, and executions whose lease is over. */
import type { Home, Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import type { At } from "../../store/store.ts";
import { matchedGroup } from "../groups/groups-sql.ts";
import { idCursor, type Paged, paged, pageLimit } from "../pages.ts";
import { type Candidate, type CandidateFilter, candidateColumns, candidateOf } from "./candidate.ts";
import { DECISIONS, EVALUATION_STATUSES, EXECUTION_STATUSES } from "./candidate-state.ts";

/** `lock`: no other transaction writes to it until this one ends. */
export async function readCandidate(
  s: string,
  run: Run,
  candidateId: number,
  lock: "" | "for no key update" = "",
): Promise<Candidate | null> {
  if (!Number.isSafeInteger(candidateId)) return null;
  const text = `select ${candidateColumns(s)} from ${s}.recovery_candidate c where c.id = $1::bigint ${lock}`;
  const [row] = await run(text, [candidateId]);
  return row ? candidateOf(row) : null;
}

function listSql(s: string, filter: CandidateFilter): { text: string; values: unknown[] } {
  const values: unknown[] = [idCursor(filter.cursor)];
  const where = ["c.id < $1::bigint"];
  // In the text: whether an index leads there soon depends on how many there are of the one that is asked for.
  const is = (name: string, value: string | undefined, known: readonly string[]) => {
    if (value !== undefined) where.push(`c.${name} = '${known.find((each) => each === value) ?? ""}'`);
  };
  is("decision", filter.decision, DECISIONS);
  is("evaluation_status", filter.evaluationStatus, EVALUATION_STATUSES);
  is("execution_status", filter.executionStatus, EXECUTION_STATUSES);
  is("action", filter.action, filter.action !== undefined && /^[\w.-]+$/.test(filter.action) ? [filter.action] : []);
  if (typeof filter.groupId === "object") where.push(`c.group_id = any ($${values.push(filter.groupId)}::bigint[])`);
  else if (filter.groupId !== undefined) where.push(`c.group_id = $${values.push(filter.groupId)}`);
  if (filter.failureMatchId !== undefined) {
    where.push(`c.group_id = ${matchedGroup(s, `$${values.push(filter.failureMatchId.toLowerCase())}`)}`);
  }
  const group: string[] = [];
  if (filter.since) group.push(`g.last_at >= $${values.push(filter.since)}::timestamptz`);
  if (filter.until) group.push(`g.first_at < $${values.push(filter.until)}::timestamptz`);
  if (filter.current ?? true) {
    group.push("g.merged_into is null");
    where.push(`not exists (select from ${s}.recovery_candidate n where n.group_id = c.group_id and n.round > c.round)`);
  }
  if (group.length > 0)
    where.push(`exists (select from ${s}.recovery_group g where g.id = c.group_id and ${group.join(" and ")})`);
  const text = `select ${candidateColumns(s)} from ${s}.recovery_candidate c where ${where.join(" and ")} order by c.id desc limit ${pageLimit(filter.limit) + 1}`;
  return { text, values };
}

export function createCandidates(home: Home) {
  const { s } = home;
  const run = home.read("read candidates");
  return {
    candidate: (candidateId: number) => readCandidate(s, run, candidateId),
    /** The latest of a group (of the one it was merged into, if it was). */
    async candidateOf(groupId: number) {
      if (!Number.isSafeInteger(groupId)) return null;
      const text = `select ${candidateColumns(s)} from ${s}.recovery_group g join ${s}.recovery_candidate c on c.group_id = coalesce(g.merged_into, g.id)
        where g.id = $1::bigint order by c.round desc limit 1`;
      const [row] = await run(text, [groupId]);
      return row ? candidateOf(row) : null;
    },
    async candidates(filter: CandidateFilter): Promise<Paged<Candidate>> {
      if (typeof filter.groupId === "number" && !Number.isSafeInteger(filter.groupId)) return { data: [], nextCursor: null };
      const { text, values } = listSql(s, filter);
      return paged((await run(text, values)).map(candidateOf), filter.limit, (last) => String(last.candidateId));
    },
    /** Executing with a lease that is over. */
    async expiredExecutions(limit: number, at?: At) {
      const text = `select ${candidateColumns(s)} from ${s}.recovery_candidate c where c.execution_status = 'executing'
        and c.lease_until is not null and c.lease_until < ${clockSql(at?.now)} order by c.lease_until, c.id limit $1::int`;
      return (await run(text, [limit])).map(candidateOf);
    },
  };
}
