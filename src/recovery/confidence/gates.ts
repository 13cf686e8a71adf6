/**
 * From which confidence on something is done. To be suggested and to be executed without a person are two questions: the second
 * is asked only of actions that are automated and safe, inside a budget and a rate, and is off by default.
 */

/** `RECOVERY_MIN_CONFIDENCE` sets the first. */
export const CONFIDENCE_GATES = { select: 0.3, autoExecute: 0.8 } as const;

export function isSelectable(confidence: number, min: number = CONFIDENCE_GATES.select): boolean {
  return confidence >= min;
}

/** What must hold before an action runs without a person; the caller has looked each of them up. */
export interface AutoExecution {
  /** `RECOVERY_AUTO_EXECUTE`; absent means off. */
  readonly enabled?: boolean;
  readonly confidence: number;
  /** The action is one that a program can carry out. */
  readonly automated: boolean;
  /** Its risk class is safe: neither risky nor forbidden. */
  readonly safe: boolean;
  /** Its policy asks for a person, or for two. */
  readonly needsApproval: boolean;
  readonly insideBudget: boolean;
  readonly insideRate: boolean;
  /** What failed is itself the work of a recovery action. */
  readonly ofRecovery: boolean;
  /** The group `<overflow>` holds what fits no template: different failures, so no action fits them (decision 0017). */
  readonly ofOverflow: boolean;
  /** The group is held for a person. */
  readonly held?: boolean;
}

export type AutoExecutionRefusal =
  | "disabled"
  | "low_confidence"
  | "not_automated"
  | "not_safe"
  | "needs_approval"
  | "over_budget"
  | "over_rate"
  | "recovery_of_recovery"
  | "overflow_group"
  | "held_group";

/** Every reason against it; none means that it may run. */
export function autoExecutionRefusals(given: AutoExecution): AutoExecutionRefusal[] {
  const reasons: [AutoExecutionRefusal, boolean][] = [
    ["disabled", given.enabled !== true],
    // Written so that a confidence that is no number is refused.
    ["low_confidence", !(given.confidence >= CONFIDENCE_GATES.autoExecute)],
    ["not_automated", !given.automated],
    ["not_safe", !given.safe],
    ["needs_approval", given.needsApproval],
    ["over_budget", !given.insideBudget],
    ["over_rate", !given.insideRate],
    ["recovery_of_recovery", given.ofRecovery],
    ["overflow_group", given.ofOverflow],
    ["held_group", given.held === true],
  ];
  return reasons.filter(([, holds]) => holds).map(([reason]) => reason);
}
