/**
 * Which of several actions comes first. Without outcomes it is the order of the rules that propose them (priority, score, id);
 * outcomes move an action up or down by its posterior, continuously, so that no single outcome turns the list over.
 */
import { type Confidence, confidence, type Evidence, PRIOR_WITHOUT_RULE } from "./confidence.ts";

/** An action with the score of the first rule that proposes it, in the order of the rules; absent: none does. */
export interface Proposal {
  readonly action: string;
  readonly score?: number;
}

export interface Ranked extends Confidence {
  readonly action: string;
  readonly prior: number;
  /** What it is ranked by: the posterior, with a prior that is no higher than that of any proposal before it. */
  readonly rank: number;
}

/**
 * The proposals, best first. A lower rule may have the higher score, and still it must not come first without a reason, or
 * priority would mean nothing: for the order alone its prior is capped by those before it. The confidence that is shown is not.
 */
export function rankActions(proposals: readonly Proposal[], evidence: (action: string) => Evidence, at: number): Ranked[] {
  let cap = 1;
  const ranked = proposals.map(({ action, score: proposed }): Ranked => {
    const score = proposed ?? PRIOR_WITHOUT_RULE;
    // Elsewhere an action was chosen because it fitted there: where no rule says that it fits here, only outcomes from here count.
    const outcomes = proposed === undefined ? { own: evidence(action).own } : evidence(action);
    cap = Math.min(cap, score);
    const shown = confidence(score, outcomes, at);
    const rank = cap === score ? shown.confidence : confidence(cap, outcomes, at).confidence;
    return { action, prior: score, rank, ...shown };
  });
  // The sort is stable: equals stay in the order of the rules.
  return ranked.sort((a, b) => b.rank - a.rank);
}
