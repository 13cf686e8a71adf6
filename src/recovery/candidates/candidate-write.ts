/**
 * WRITE and REOPEN: a candidate changes under its version, its execution, its group's version and the budget, with its provenance and
 * messages in the same transaction. The group's row is taken first, as by an ingest and a merge, then the candidate's own.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Home, Inside, Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import { learnIn } from "../confidence/outcomes-sql.ts";
import { latestOf, lockGroups } from "../failures/ingest-sql.ts";
import { closeReports } from "../failures/reports-sql.ts";
import type { NewProvenance } from "../provenance.ts";
import { record } from "../provenance-sql.ts";
import { type Candidate, type CandidatePatch, type CandidateWrite, type CandidateWritten, PLAIN } from "./candidate.ts";
import { isClosed } from "./candidate-state.ts";
import { readCandidate } from "./candidates-sql.ts";
import { type AskSettings, askEvaluation, openRounds } from "./rounds.ts";

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

type Refusal = Exclude<CandidateWritten["kind"], "done" | "not_found">;

/** DR-1, DR-2: what was read may be old; what is compared here is under the locks of the group and the candidate. */
async function refusal(s: string, run: Run, candidate: Candidate, request: CandidateWrite, now: Date): Promise<Refusal | null> {
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
  if (refused) return { kind: refused, candidate };
  if (patch.executionStatus === "executing" && !(patch.executionId ?? candidate.executionId)) {
    const text = `candidate ${candidateId} cannot be executed without an execution id`;
    throw new MakegoodError("wrong_state", text, { candidateId });
  }
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

export function createCandidateWrites(home: Home) {
  const { s } = home;
  return {
    /** A move that nobody may make is refused by the table (`wrong_state`), and nothing is written. */
    write: (request: CandidateWrite) => home.transaction("write a candidate", (inside) => write(s, inside, request)),
    /**
     * Opens the next round of a group whose latest candidate is closed, or its first; else the latest as it is. Lines of provenance without a
     * candidate get the one returned. Null: there is no such group, and nothing is written.
     */
    reopen: (groupId: number, settings: AskSettings, provenance: readonly NewProvenance[]) =>
      home.transaction("reopen a group", (inside) => reopen(s, inside, groupId, settings, provenance)),
  };
}
