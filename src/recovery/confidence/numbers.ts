/** What the recovery engine counts: what became of messages that an action touched, and how much there is of everything. */
import type { Decision, EvaluationStatus, ExecutionStatus } from "../candidates/candidate.ts";

/** Outcomes as they weigh at `at` (milliseconds since the epoch); see recovery/confidence. */
export interface OutcomeCount {
  readonly action: string;
  /** `group`: of this group and those merged into it. */
  readonly level: "group" | "topic" | "all";
  readonly successes: number;
  readonly failures: number;
  readonly at: number;
}

export interface Learned {
  readonly groupId: number;
  readonly action: string;
  readonly healed: number;
  readonly failed: number;
}

/** Candidates of all rounds; groups that were merged into others are counted there. */
export interface RecoveryStats {
  readonly groups: number;
  readonly openGroups: number;
  readonly occurrences: number;
  readonly decisions: Readonly<Record<Decision, number>>;
  readonly evaluations: Readonly<Record<EvaluationStatus, number>>;
  readonly executions: Readonly<Record<ExecutionStatus, number>>;
  /** Of all groups together. */
  readonly outcomes: readonly OutcomeCount[];
  /** Open dead letters that are not ingested yet; UNINGESTED_MAX means so many or more. */
  readonly uningested: number;
}

/** I10: after an upgrade they are many, and are not counted whole. */
export const UNINGESTED_MAX = 10_000;
