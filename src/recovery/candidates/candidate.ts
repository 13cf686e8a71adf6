/** A candidate: the suggestion for a group, what was decided about it and what became of it. */
import type { Row } from "../../store/home.ts";
import { fromEpoch } from "../../store/shared/clock-sql.ts";
import { columns, int, intOrNull, moment, momentOrNull, text, textOrNull } from "../columns.ts";
import { line, type NewProvenance } from "../provenance.ts";
import type { Actor } from "../recovery.ts";
import type { Decision, EvaluationStatus, ExecutionStatus } from "./candidate-state.ts";

/** Of `recovery_candidate c`. */
const record = (s: string) =>
  columns({
    candidateId: int("c.id"),
    groupId: int("c.group_id"),
    /** At most one of a group is current: the latest. */
    round: int("c.round"),
    version: int("c.version"),
    createdAt: moment("c.created_at"),
    updatedAt: moment("c.updated_at"),
    decision: text<Decision>("c.decision"),
    approvals: {
      sql: `(select json_agg(json_build_array(a.actor, extract(epoch from a.at), a.note, a.occurrences) order by a.n)::text
        from ${s}.recovery_approval a where a.candidate_id = c.id)`,
      read: approvalsOf,
    },
    evaluationStatus: text<EvaluationStatus>("c.evaluation_status"),
    evaluations: int("c.evaluations"),
    evaluatedAt: momentOrNull("c.evaluated_at"),
    selectedAction: textOrNull("c.action"),
    confidence: intOrNull("c.confidence"),
    /** JSON text: why, alternatives, what each rule contributed. */
    evaluation: textOrNull("c.evaluation"),
    /** The group's version that was evaluated or approved. */
    groupVersion: int("c.group_version"),
    executionStatus: text<ExecutionStatus>("c.execution_status"),
    /** The fence of the running or last execution. */
    executionId: textOrNull("c.execution_id"),
    executedBy: textOrNull("c.executed_by"),
    /** Null when no lease is needed (not executing, or a redrive carries it on). */
    leaseUntil: momentOrNull("c.lease_until"),
    executedAt: momentOrNull("c.executed_at"),
    executionResult: textOrNull("c.execution_result"),
    redriveId: textOrNull("c.redrive_id"),
    owner: textOrNull("c.owner"),
    note: textOrNull("c.note"),
    /** When this execution succeeds, reported failures of its group up to this occurrence have ended; null: it is not about them. */
    reportsThrough: intOrNull("c.reports_through"),
  });

export type Candidate = ReturnType<ReturnType<typeof record>["of"]>;

export const candidateColumns = (s: string): string => record(s).list;

const { of } = record("");
export const candidateOf = (row: Row): Candidate => of(row);

export type Approval = ReturnType<typeof approvalsOf>[number];

function approvalsOf(json: string | null) {
  const given = JSON.parse(json ?? "[]") as [string, number, string | null, number | null][];
  // `occurrenceCount`: how many failures the group had when it was given; null: not said.
  return given.map(([actor, at, note, occurrenceCount]) => ({ actor, at: fromEpoch(String(at)) as Date, note, occurrenceCount }));
}

/** A line of the record about its action, with the reason that was given. */
export function lineOf(
  { candidateId, groupId, selectedAction: action }: Candidate,
  event: string,
  by: Actor & { readonly reason?: string | null | undefined },
  more: Parameters<typeof line>[2] = {},
): NewProvenance {
  return line(event, by, { candidateId, groupId, action, reason: by.reason, ...more });
}
