/**
 * The one confidence: how likely an action heals a kind of failure. At most one action is the cure; what each of them did here, and
 * a little of what it did for other kinds, says which. So a failure of one action speaks for the others, and one that heals
 * well leaves them little. Pure: the same evidence gives the same numbers in every process.
 */
import { decayed, type OutcomeCounts, successShare, weightOf } from "./outcome-counts.ts";
import { CURE, HEALS } from "./priors.ts";

/** Outcomes of one action, from the nearest to the farthest; absent where there are none. */
export interface Evidence {
  /** Of this kind of failure, in executions. */
  readonly own?: OutcomeCounts | undefined;
  /** Of other kinds with the same cause, in executions of this kind that they are worth. */
  readonly cause?: OutcomeCounts | undefined;
  /** Of all other kinds. */
  readonly all?: OutcomeCounts | undefined;
}

/** What a level of evidence added: so many executions with this share of successes. */
export interface Contribution {
  readonly from: "prior" | "own" | "cause" | "all";
  readonly weight: number;
  readonly mean: number;
}

/** What counts for an action at `at`. */
export function contributionsOf(evidence: Evidence, at: number): Contribution[] {
  return (["own", "cause", "all"] as const).flatMap((from) => {
    const counts = evidence[from];
    if (counts === undefined) return [];
    const now = decayed(counts, at);
    return weightOf(now) > 0 ? [{ from, weight: weightOf(now), mean: successShare(now) }] : [];
  });
}

export interface Belief {
  /** How likely it is the cure. */
  readonly cure: number;
  /** How likely it heals, as the cure or not. */
  readonly heals: number;
  readonly successes: number;
  readonly failures: number;
}

/** What to believe of each of several actions, `first` being the one that the first rule proposes; -1: no rule proposes any. */
export function beliefs(all: readonly (readonly Contribution[])[], first: number): Belief[] {
  const others = all.length - (first < 0 ? 0 : 1);
  const left = 1 - CURE.none - (first < 0 ? 0 : CURE.ofFirstRule);
  const rows = all.map((contributions, i) => {
    const successes = contributions.reduce((sum, { weight, mean }) => sum + weight * mean, 0);
    const failures = contributions.reduce((sum, { weight, mean }) => sum + weight * (1 - mean), 0);
    const before = i === first ? CURE.ofFirstRule : left / others;
    const odds = fits(HEALS.cure, successes, failures) - fits(HEALS.other, successes, failures);
    return { successes, failures, log: Math.log(before) + odds };
  });
  const none = Math.log(CURE.none);
  const top = Math.max(none, ...rows.map(({ log }) => log));
  const total = rows.reduce((sum, { log }) => sum + Math.exp(log - top), Math.exp(none - top));
  return rows.map(({ successes, failures, log }) => {
    const cure = Math.exp(log - top) / total;
    const heals = cure * mean(HEALS.cure, successes, failures) + (1 - cure) * mean(HEALS.other, successes, failures);
    return { cure, heals, successes, failures };
  });
}

type Prior = (typeof HEALS)["cure" | "other"];

function mean(prior: Prior, successes: number, failures: number): number {
  return (prior.successes + successes) / (prior.successes + prior.failures + successes + failures);
}

/** How well outcomes fit a prior: the logarithm of their probability under it, but for what is the same under all. */
function fits(prior: Prior, successes: number, failures: number): number {
  return logBeta(prior.successes + successes, prior.failures + failures) - logBeta(prior.successes, prior.failures);
}

function logBeta(a: number, b: number): number {
  return logGamma(a) + logGamma(b) - logGamma(a + b);
}

/** For x above 0: stepped up to where four terms of Stirling's series are exact to 12 digits. */
function logGamma(x: number): number {
  let [at, steps] = [x, 1];
  for (; at < 10; at++) steps *= at;
  const inverse = 1 / at;
  const square = inverse * inverse;
  const series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1_260 - square / 1_680)));
  return (at - 0.5) * Math.log(at) - at + Math.log(2 * Math.PI) / 2 + series - Math.log(steps);
}
