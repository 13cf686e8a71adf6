/** What the recovery engine counts: what became of messages that an action touched, and how much there is of everything. */
import type { Decision, EvaluationStatus, ExecutionStatus } from "../candidates/candidate-state.ts";

/** Executions of an action over all groups as they weigh now, without those that came after a repair. */
export interface OutcomeCount {
  readonly action: string;
  readonly successes: number;
  readonly failures: number;
}

/** What became of messages of a group that an execution touched, beyond what was known before. */
export interface Learned {
  readonly groupId: number;
  readonly action: string;
  readonly healed: number;
  readonly failed: number;
  /** The execution's redrive; absent: an execution of its own. */
  readonly redriveId?: string | undefined;
  /** What was repaired before it. */
  readonly repair?: string | undefined;
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
