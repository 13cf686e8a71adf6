/**
 * The one confidence: how likely an action heals a failure. A rule's score is the prior mean, worth three observations; the outcomes
 * of this fingerprint and action update it, those of the topic and then of all topics stand in as long as there are fewer than
 * three; the posterior mean is the answer. Pure: the same evidence gives the same number in every process.
 */
import { MakegoodError } from "../../message/errors.ts";
import { decayed, type OutcomeCounts, successShare, weightOf } from "./outcome-counts.ts";

/** What a rule's score is worth, in observations. */
export const PRIOR_WEIGHT = 3;

/**
 * How many observations outcomes from elsewhere may stand in for. They make room one for one as outcomes of the fingerprint come in, so
 * the first of these moves the answer a little, and never throws it over.
 */
export const STAND_IN_WEIGHT = 3;

/** The prior of an action that no rule proposes: below what is selected, so that only outcomes bring it up. */
export const PRIOR_WITHOUT_RULE = 0.2;

/** Outcomes of one action, from the nearest to the farthest; absent where there are none. */
export interface Evidence {
  /** Of this fingerprint. */
  readonly own?: OutcomeCounts;
  readonly topic?: OutcomeCounts;
  readonly global?: OutcomeCounts;
}

/** What a level of evidence added: so many observations with this share of successes. */
export interface Contribution {
  readonly from: "prior" | "own" | "topic" | "global";
  readonly weight: number;
  readonly mean: number;
}

export interface Confidence {
  /** In [0, 1]. */
  readonly confidence: number;
  /** Observations behind it, the prior's three included. */
  readonly weight: number;
  readonly contributions: readonly Contribution[];
}

/** `prior` is the score of the rule that proposes the action. */
export function confidence(prior: number, evidence: Evidence, at: number): Confidence {
  if (!(prior >= 0 && prior <= 1)) {
    throw new MakegoodError("invariant_violated", `A score of ${prior} is no probability: it must lie in 0 to 1.`, { prior });
  }
  const contributions: Contribution[] = [{ from: "prior", weight: PRIOR_WEIGHT, mean: prior }];
  const add = (from: Contribution["from"], counts: OutcomeCounts | undefined, weightMax: number): number => {
    if (counts === undefined) return 0;
    const now = decayed(counts, at);
    const weight = Math.min(weightOf(now), weightMax);
    if (weight <= 0) return 0;
    contributions.push({ from, weight, mean: successShare(now) });
    return weight;
  };
  const own = add("own", evidence.own, Number.POSITIVE_INFINITY);
  const room = Math.max(0, STAND_IN_WEIGHT - own);
  const topic = add("topic", evidence.topic, room);
  add("global", evidence.global, Math.max(0, room - topic));
  return { ...posterior(prior, contributions), contributions };
}

/** Written as the prior plus a correction: without outcomes the answer is the score to the last bit, so 0.8 passes a gate of 0.8. */
function posterior(prior: number, contributions: readonly Contribution[]): Pick<Confidence, "confidence" | "weight"> {
  let weight = PRIOR_WEIGHT;
  let correction = 0;
  for (const each of contributions) {
    if (each.from === "prior") continue;
    weight += each.weight;
    correction += each.weight * (each.mean - prior);
  }
  return { confidence: Math.min(1, Math.max(0, prior + correction / weight)), weight };
}

/** How far the true value may well lie from the mean: the standard deviation of the beta distribution with this mean and weight. */
export function spread({ confidence: mean, weight }: Pick<Confidence, "confidence" | "weight">): number {
  return Math.sqrt((mean * (1 - mean)) / (weight + 1));
}
