/** A candidate: the suggestion for a group, what was decided about it and what became of it. */
import type { NewMessage } from "../../message/message.ts";
import type { At } from "../../store/store.ts";
import type { GroupFilter } from "../groups/group.ts";
import type { Page } from "../pages.ts";
import type { NewProvenance } from "../provenance.ts";
import type { Approval } from "./candidate-state.ts";

export type Decision = "pending" | "approved" | "rejected";

export type EvaluationStatus = "unevaluated" | "evaluating" | "evaluated" | "failed";

/** `unknown`: it was running when its process died; a person must say what became of it (DR-5). */
export type ExecutionStatus = "pending" | "executing" | "succeeded" | "failed" | "rolled_back" | "skipped" | "unknown";

export interface Candidate {
  readonly candidateId: number;
  readonly groupId: number;
  /**
   * 1 for the first candidate of its group. At most one of a group is current: the latest. Its first provenance line, `created` by
   * `system`, is written by the store.
   */
  readonly round: number;
  /** Raised by every write to it. */
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly decision: Decision;
  readonly approvals: readonly Approval[];
  readonly evaluationStatus: EvaluationStatus;
  /** Evaluations asked for so far. */
  readonly evaluations: number;
  readonly evaluatedAt: Date | null;
  /** The selected action. */
  readonly selectedAction: string | null;
  readonly confidence: number | null;
  /** The evaluation as JSON text: why, alternatives, what each rule contributed. */
  readonly evaluation: string | null;
  /** The group's version that was evaluated or approved. */
  readonly groupVersion: number;
  readonly executionStatus: ExecutionStatus;
  /** The fence of the running or last execution. */
  readonly executionId: string | null;
  readonly executedBy: string | null;
  /** When its lease ends; null when no lease is needed (not executing, or a redrive carries it on). */
  readonly leaseUntil: Date | null;
  readonly executedAt: Date | null;
  readonly executionResult: string | null;
  readonly redriveId: string | null;
  readonly owner: string | null;
  readonly note: string | null;
  /** When this execution succeeds, reported failures of its group up to this occurrence have ended; null: it is not about them. */
  readonly reportsThrough: number | null;
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
