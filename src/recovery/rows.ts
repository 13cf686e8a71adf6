/** SQL that several folders of recovery share. */
import type { Row } from "../store/home.ts";
import { epoch, fromEpoch } from "../store/shared/clock-sql.ts";
import type { Candidate } from "./candidates/candidate.ts";

export const number = (text: string | null | undefined): number | null =>
  text === null || text === undefined ? null : Number(text);
const date = (text: string | null | undefined) => fromEpoch(text) as Date;

/** `g` and all that was merged into it. */
export const membersOf = (s: string, g: string) =>
  `(select ${g} as id union all select m.id from ${s}.recovery_group m where m.merged_into = ${g})`;

/** A dead letter that is open by a death that was counted in a group. */
export const OPEN_IN_GROUP = "d.resolution = 0 and d.ingested_attempts = d.attempts";

/** Of group `g` and what was merged into it: failures that other services reported and that have not ended, as `o`. */
export const openReportsOf = (s: string, g: string) => `${membersOf(s, g)} x join ${s}.recovery_group k on k.id = x.id
    join ${s}.recovery_occurrence o on o.group_id = x.id and o.message_id is null and o.sent_id is null and o.id > k.reports_closed`;

/** Of `recovery_candidate c`. */
export const candidateColumns = (
  s: string,
) => `c.id::text, c.group_id::text, c.round::text, c.version::text, ${epoch("c.created_at")},
  ${epoch("c.updated_at")}, c.decision, c.evaluation_status, c.evaluations::text, ${epoch("c.evaluated_at")}, c.action, c.confidence::text,
  c.evaluation, c.group_version::text, c.execution_status, c.execution_id, c.executed_by, ${epoch("c.lease_until")}, ${epoch("c.executed_at")},
  c.execution_result, c.redrive_id, c.owner, c.note,
  (select json_agg(json_build_array(a.actor, extract(epoch from a.at), a.note, a.occurrences) order by a.n)::text from ${s}.recovery_approval a
    where a.candidate_id = c.id), c.reports_through::text`;

export function candidateOf(row: Row): Candidate {
  const approvals = JSON.parse(row[23] ?? "[]") as [string, number, string | null, number | null][];
  return {
    candidateId: Number(row[0]),
    groupId: Number(row[1]),
    round: Number(row[2]),
    version: Number(row[3]),
    createdAt: date(row[4]),
    updatedAt: date(row[5]),
    decision: row[6] as Candidate["decision"],
    approvals: approvals.map(([actor, at, note, occurrenceCount]) => ({ actor, at: date(String(at)), note, occurrenceCount })),
    evaluationStatus: row[7] as Candidate["evaluationStatus"],
    evaluations: Number(row[8]),
    evaluatedAt: fromEpoch(row[9]),
    selectedAction: row[10] as string | null,
    confidence: number(row[11]),
    evaluation: row[12] as string | null,
    groupVersion: Number(row[13]),
    executionStatus: row[14] as Candidate["executionStatus"],
    executionId: row[15] as string | null,
    executedBy: row[16] as string | null,
    leaseUntil: fromEpoch(row[17]),
    executedAt: fromEpoch(row[18]),
    executionResult: row[19] as string | null,
    redriveId: row[20] as string | null,
    owner: row[21] as string | null,
    note: row[22] as string | null,
    reportsThrough: number(row[24]),
  };
}
