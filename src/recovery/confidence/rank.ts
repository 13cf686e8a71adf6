/** Which of several actions comes first: in the order of the rules without outcomes, then by how likely each heals. */
import { MakegoodError } from "../../message/errors.ts";
import { type Belief, beliefs, type Contribution, contributionsOf, type Evidence } from "./confidence.ts";
import { GUESS, LIKELY, PRIOR_WITHOUT_RULE } from "./priors.ts";

/** An action with the score of the first rule that proposes it, in the order of the rules; absent: none does. */
export interface Proposal {
  readonly action: string;
  readonly score?: number;
  /** Its rule asks how often something happened, and not what: that says little about what heals it. */
  readonly general?: boolean;
}

export interface Ranked {
  readonly action: string;
  readonly prior: number;
  /** In [0, 1]: how likely it heals; without outcomes the score. */
  readonly confidence: number;
  /** It is ranked by what this says: the same without the score, which may be higher for a lower rule. */
  readonly belief: Belief;
  /** Executions behind it, the score's included. */
  readonly weight: number;
  readonly contributions: readonly Contribution[];
  /** Outcomes say something about it: its own, or those of other actions for this kind. */
  readonly known: boolean;
}

/**
 * The proposals, best first. A score is a guess: it corrects what was fitted for as long as little is known of this kind, so that a
 * failure without a history has the confidence that its rule states.
 */
export function rankActions(proposals: readonly Proposal[], evidence: (action: string) => Evidence, at: number): Ranked[] {
  const known = proposals.map(({ action }) => contributionsOf(evidence(action), at));
  const scored = proposals.filter(({ score }) => score !== undefined);
  const first = proposals.indexOf(scored.find(({ general }) => general !== true) ?? (scored[0] as Proposal));
  const before = beliefs(
    known.map(() => []),
    first,
  );
  const after = beliefs(known, first);
  const here = known.flat().reduce((sum, { from, weight }) => sum + (from === "own" ? weight : 0), 0);
  const ranked = proposals.map(({ action, score }, i): Ranked => {
    const prior = score ?? PRIOR_WITHOUT_RULE;
    if (!(prior >= 0 && prior <= 1)) {
      throw new MakegoodError("invariant_violated", `A score of ${prior} is no probability: it must lie in 0 to 1.`, { prior });
    }
    const belief = after[i] as Belief;
    const [was, is] = [before[i]?.heals ?? 0, belief.heals];
    // Written as the score plus what was learned: without outcomes it is the score to the last bit, so 0.8 passes a gate of 0.8.
    const confidence = prior + (is - was) + (was - prior) * (here / (here + GUESS));
    const weights = known[i]?.reduce((sum, { weight }) => sum + weight, 0) ?? 0;
    return {
      action,
      prior,
      confidence: Math.min(1, Math.max(0, confidence)),
      belief,
      weight: GUESS + weights,
      contributions: [{ from: "prior", weight: GUESS, mean: prior }, ...(known[i] ?? [])],
      known: here + weights > 0,
    };
  });
  if (!ranked.some(({ known }) => known)) return ranked;
  // Few outcomes say little about how often an action heals: until one has healed a few times, it counts which is likely the cure.
  const healed = Math.max(
    ...known.map((each) => each.reduce((sum, { from, weight, mean }) => sum + (from === "own" ? weight * mean : 0), 0)),
  );
  const likely = LIKELY.worth * Math.max(0, 1 - healed / LIKELY.until);
  const worth = ({ belief }: Ranked) => belief.heals + likely * belief.cure;
  // The sort is stable: equals stay in the order of the rules.
  return ranked.sort((a, b) => worth(b) - worth(a));
}
