/** A candidate: the suggestion for a group, what was decided about it and what became of it. */
import type { NewMessage } from "../../message/message.ts";
import type { Row } from "../../store/home.ts";
import { fromEpoch } from "../../store/shared/clock-sql.ts";
import type { At } from "../../store/store.ts";
import { columns, int, intOrNull, moment, momentOrNull, text, textOrNull } from "../columns.ts";
import type { GroupFilter } from "../groups/group.ts";
import type { Page } from "../pages.ts";
import { line, type NewProvenance } from "../provenance.ts";
import type { Actor } from "../recovery.ts";
import type { Decision, EvaluationStatus, ExecutionStatus } from "./candidate-state.ts";

/** Of `recovery_candidate c`. */
const record = (s: string) =>
  columns({
    candidateId: int("c.id"),
    groupId: int("c.group_id"),
    /** At most one of a group is current: the latest. Its first provenance line, `created` by `system`, is written by the store. */
    round: int("c.round"),
    /** Raised by every write to it. */
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
    /** Evaluations asked for so far. */
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

/** Written as they come. */
export const PLAIN = [
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
  /** Sets `evaluatedAt` to the store's now. */
  readonly evaluated?: boolean | undefined;
  /** From the store's now; null takes the lease away. */
  readonly leaseMs?: number | null | undefined;
  /** Sets `executedAt` to the store's now. */
  readonly executed?: boolean | undefined;
  /** Written to the group (the one it was merged into, if it was), raising its version when it changes. */
  readonly heldBy?: string | null | undefined;
}

export interface CandidateWrite extends At {
  readonly candidateId: number;
  /** Refused as `version_conflict` unless the candidate still has this version and this execution; absent: not asked. Asked first. */
  readonly version?: number | undefined;
  readonly executionId?: string | undefined;
  /** Refused as `lease_over` unless it is executing under a lease that still runs. */
  readonly leased?: boolean | undefined;
  /** Refused unless its group still has this version. */
  readonly groupVersion?: number | undefined;
  /**
   * Refused as `over_budget` when so many executions by `executedBy` began (a write set `executing`) later than `windowMs` before now.
   * Asked last; serialised with its like.
   */
  readonly budget?: { readonly executedBy: string; readonly windowMs: number; readonly executionsMax: number } | undefined;
  readonly patch: CandidatePatch;
  readonly provenance: readonly NewProvenance[];
  /** Enqueued in the same write; a key that is taken by another payload throws `key_conflict`, and nothing is written. */
  readonly messages?: readonly NewMessage[] | undefined;
  /** What became of failures that this execution was about, to be learned in the same write. */
  readonly learned?: { readonly healed: number; readonly failed: number } | undefined;
}

export type CandidateWritten =
  | { readonly kind: "done"; readonly candidate: Candidate }
  | { readonly kind: "not_found" }
  | { readonly kind: "version_conflict" | "lease_over" | "group_changed" | "over_budget"; readonly candidate: Candidate };

export interface CandidateFilter extends Page, Pick<GroupFilter, "since" | "until"> {
  readonly groupId?: number | readonly number[] | undefined;
  readonly failureMatchId?: string | undefined;
  readonly decision?: Decision | undefined;
  readonly evaluationStatus?: EvaluationStatus | undefined;
  readonly executionStatus?: ExecutionStatus | undefined;
  readonly action?: string | undefined;
  /** True (default): only the latest of each group, and none of groups that were merged into others. */
  readonly current?: boolean | undefined;
  /** `size`: by that of their groups, the latest candidate of each. A page may then hold fewer than there are, with a cursor to go on. */
  readonly order?: GroupFilter["order"];
}
