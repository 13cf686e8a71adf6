/**
 * Candidates in their table. A write changes one under its version, its execution, its group's version and the budget, with provenance and
 * messages in the same transaction; the group's row is taken first, as by an ingest and a merge, then the candidate's own.
 */
import type { NewMessage } from "../../message/message.ts";
import type { Home, Inside, Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import type { At } from "../../store/store.ts";
import { learnIn } from "../confidence/outcomes-sql.ts";
import { latestOf, lockGroups } from "../failures/ingest-sql.ts";
import { closeReports } from "../failures/reports-sql.ts";
import type { GroupFilter } from "../groups/group.ts";
import { matchedGroup } from "../groups/groups-sql.ts";
import { idCursor, type Page, type Paged, paged, pageLimit } from "../pages.ts";
import { type NewProvenance, record } from "../provenance.ts";
import { type Approval, type Candidate, candidateColumns, candidateOf } from "./candidate.ts";
import { DECISIONS, EVALUATION_STATUSES, EXECUTION_STATUSES, isClosed } from "./candidate-state.ts";
import { type AskSettings, askEvaluation, openRounds } from "./rounds.ts";

/** Written as they come. */
const PLAIN = [
  ...(["decision", "evaluationStatus", "selectedAction", "confidence", "evaluation", "groupVersion", "executionStatus"] as const),
  ...(["executionId", "executedBy", "executionResult", "redriveId", "owner", "note", "reportsThrough"] as const),
];
type Plain = { readonly [K in (typeof PLAIN)[number]]?: Candidate[K] | undefined };

/** Absent members stay as they are. */
export interface CandidatePatch extends Plain {
  /** Adds one, after `clearApprovals`; the same actor twice is one, as first written. */
  readonly approval?: (Pick<Approval, "actor" | "note"> & Partial<Pick<Approval, "occurrenceCount">>) | undefined;
  /** All of them, or those of these people. */
  readonly clearApprovals?: boolean | readonly string[] | undefined;
  /** Each by the store's now: `evaluatedAt`, `executedAt`, and when the lease ends; null takes it away. */
  readonly evaluated?: boolean | undefined;
  readonly executed?: boolean | undefined;
  readonly leaseMs?: number | null | undefined;
  /** Written to the group (the one it was merged into, if it was), raising its version when it changes. */
  readonly heldBy?: string | null | undefined;
}

export interface CandidateWrite extends At {
  readonly candidateId: number;
  /** Refused unless it still has this version and execution, runs under its lease, and its group has this version; absent: not asked. */
  readonly version?: number | undefined;
  readonly executionId?: string | undefined;
  readonly leased?: boolean | undefined;
  readonly groupVersion?: number | undefined;
  /** Asked last, serialised with its like: refused when so many executions by `executedBy` began later than `windowMs` before now. */
  readonly budget?: { readonly executedBy: string; readonly windowMs: number; readonly executionsMax: number } | undefined;
  readonly patch: CandidatePatch;
  readonly provenance: readonly NewProvenance[];
  /** Enqueued in the same write; a key that is taken by another payload throws `key_conflict`, and nothing is written. */
  readonly messages?: readonly NewMessage[] | undefined;
  readonly learned?: { readonly healed: number; readonly failed: number } | undefined;
}

export type CandidateWritten =
  | { readonly kind: "done"; readonly candidate: Candidate }
  | { readonly kind: "not_found" }
  | { readonly kind: NonNullable<Awaited<ReturnType<typeof refusal>>>; readonly candidate: Candidate };

export interface CandidateFilter extends Page, Pick<GroupFilter, "since" | "until"> {
  readonly groupId?: number | readonly number[] | undefined;
  readonly failureMatchId?: string | undefined;
  readonly decision?: Candidate["decision"] | undefined;
  readonly evaluationStatus?: Candidate["evaluationStatus"] | undefined;
  readonly executionStatus?: Candidate["executionStatus"] | undefined;
  readonly action?: string | undefined;
  /** True (default): only the latest of each group, and none of groups that were merged into others. */
  readonly current?: boolean | undefined;
  /** `size`: by that of their groups, the latest candidate of each. A page may then hold fewer than there are, with a cursor to go on. */
  readonly order?: GroupFilter["order"];
}

async function readCandidate(s: string, run: Run, candidateId: number, lock = ""): Promise<Candidate | null> {
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

/** The action is what is selected; the other columns have the names of their fields. */
const columnOf = (name: string): string =>
  name === "selectedAction" ? "action" : name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

async function update(s: string, run: Run, candidateId: number, patch: CandidatePatch, now: Date): Promise<void> {
  const values: unknown[] = [candidateId];
  const clock = clockSql(now);
  const sets = ["version = version + 1", `updated_at = ${clock}`];
  for (const name of PLAIN) {
    if (patch[name] !== undefined) sets.push(`${columnOf(name)} = $${values.push(patch[name])}`);
  }
  if (patch.evaluated) sets.push(`evaluated_at = ${clock}`);
  if (patch.executed) sets.push(`executed_at = ${clock}`);
  if (patch.executionStatus === "executing") sets.push(`began_at = ${clock}`);
  if (patch.leaseMs === null) sets.push("lease_until = null");
  else if (patch.leaseMs !== undefined)
    sets.push(`lease_until = ${clock} + $${values.push(patch.leaseMs)}::float8 * interval '1 ms'`);
  await run(`update ${s}.recovery_candidate set ${sets.join(", ")} where id = $1::bigint`, values);
  if (patch.clearApprovals) {
    const text = `delete from ${s}.recovery_approval where candidate_id = $1::bigint and ($2::text[] is null or actor = any ($2::text[]))`;
    await run(text, [candidateId, patch.clearApprovals === true ? null : patch.clearApprovals]);
  }
  if (patch.approval) {
    const { actor, note, occurrenceCount = null } = patch.approval;
    const text = `insert into ${s}.recovery_approval (candidate_id, actor, at, note, occurrences)
      values ($1::bigint, $2, ${clock}, $3, $4::bigint) on conflict (candidate_id, actor) do nothing`;
    await run(text, [candidateId, actor, note, occurrenceCount]);
  }
}

/** DR-1, DR-2: what was read may be old; what is compared here is under the locks of the group and the candidate. */
async function refusal(s: string, run: Run, candidate: Candidate, request: CandidateWrite, now: Date) {
  const { version, executionId, groupVersion, budget } = request;
  if (version !== undefined && version !== candidate.version) return "version_conflict";
  if (executionId !== undefined && executionId !== candidate.executionId) return "version_conflict";
  const { executionStatus, leaseUntil } = candidate;
  if (request.leased && !(executionStatus === "executing" && leaseUntil && leaseUntil > now)) return "lease_over";
  if (groupVersion !== undefined) {
    const [row] = await run(`select version::text from ${s}.recovery_group where id = $1::bigint`, [candidate.groupId]);
    if (Number(row?.[0]) !== groupVersion) return "group_changed";
  }
  if (!budget) return null;
  const text = `select count(*)::text from ${s}.recovery_candidate where executed_by = $1
    and began_at is not null and began_at > ${clockSql(now)} - $2::float8 * interval '1 ms'`;
  const [row] = await run(text, [budget.executedBy, budget.windowMs]);
  return Number(row?.[0]) >= budget.executionsMax ? "over_budget" : null;
}

async function write(s: string, inside: Inside, request: CandidateWrite): Promise<CandidateWritten> {
  const { run } = inside;
  const { candidateId, patch, budget } = request;
  const seen = await readCandidate(s, run, candidateId);
  if (!seen) return { kind: "not_found" };
  if (budget) {
    await run("select pg_advisory_xact_lock(hashtextextended($1, 0))::text", [`makegood budget ${s} ${budget.executedBy}`]);
  }
  const { now } = await lockGroups(s, run, [String(seen.groupId)], request.now);
  // A redrive that starts takes over the candidate without its group: the row itself is what is compared.
  const candidate = (await readCandidate(s, run, candidateId, "for no key update")) as Candidate;
  const refused = await refusal(s, run, candidate, request, now);
  if (refused !== null) return { kind: refused, candidate };
  await update(s, run, candidateId, patch, now);
  const { groupId, selectedAction: action } = candidate;
  if (patch.heldBy !== undefined) {
    const hold = `update ${s}.recovery_group g set held_by = $2, version = g.version + 1 from ${s}.recovery_group f
      where f.id = $1::bigint and g.id = coalesce(f.merged_into, f.id) and g.held_by is distinct from $2`;
    await run(hold, [groupId, patch.heldBy]);
  }
  const through = patch.reportsThrough ?? candidate.reportsThrough;
  if (patch.executionStatus === "succeeded" && through !== null) await closeReports(s, run, groupId, through);
  if (request.learned && action !== null) await learnIn(s, run, [{ groupId, action, ...request.learned }], now);
  await record(s, run, request.provenance, { now });
  await inside.enqueue(request.messages ?? [], { now: request.now });
  return { kind: "done", candidate: (await readCandidate(s, run, candidateId)) as Candidate };
}

async function reopen(
  s: string,
  inside: Inside,
  groupId: number,
  settings: AskSettings,
  provenance: readonly NewProvenance[],
): Promise<Candidate | null> {
  const { run } = inside;
  if (!Number.isSafeInteger(groupId)) return null;
  const { now, rootOf } = await lockGroups(s, run, [String(groupId)], settings.now);
  const group = rootOf.get(String(groupId));
  const latest = group && (await latestOf(s, run, [group])).get(group);
  if (!group || !latest) return null;
  const { occurrenceCount, version: groupVersion } = latest;
  let { candidate } = latest;
  if (!candidate || isClosed(candidate)) {
    const rounds = await openRounds(s, run, [{ group, round: (candidate?.round ?? 0) + 1, groupVersion }], now);
    candidate = rounds.get(group) as Candidate;
  }
  const { candidateId } = candidate;
  const asked = askEvaluation(settings, candidate, { occurrences: occurrenceCount, before: occurrenceCount, now });
  if (asked) {
    const text = `update ${s}.recovery_candidate set evaluation_status = 'unevaluated', evaluations = evaluations + 1, version = version + 1,
      updated_at = ${clockSql(now)} where id = $1::bigint`;
    await run(text, [candidateId]);
  }
  const lines = provenance.map((one) => ({ ...one, candidateId: one.candidateId ?? candidateId }));
  await record(s, run, lines, { now });
  if (asked) await inside.enqueue([asked.message], { now: settings.now });
  return asked?.candidate ?? candidate;
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
    async expiredExecutions(limit: number, at?: At) {
      const text = `select ${candidateColumns(s)} from ${s}.recovery_candidate c where c.execution_status = 'executing'
        and c.lease_until is not null and c.lease_until < ${clockSql(at?.now)} order by c.lease_until, c.id limit $1::int`;
      return (await run(text, [limit])).map(candidateOf);
    },
    /** A move that nobody may make is refused by the table (`wrong_state`), and nothing is written. */
    write: (request: CandidateWrite) => home.transaction("write a candidate", (inside) => write(s, inside, request)),
    /** The next round where the latest candidate is closed, or the first; else the latest as it is. Null: there is no such group. */
    reopen: (groupId: number, settings: AskSettings, provenance: readonly NewProvenance[]) =>
      home.transaction("reopen a group", (inside) => reopen(s, inside, groupId, settings, provenance)),
  };
}
