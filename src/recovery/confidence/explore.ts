/**
 * Which action to try when more should be learned than the suggestion itself would teach. Deterministic and bounded: only actions
 * that are declared safe, only for a given share of all tries, and only where an action may turn out better than the suggestion.
 * What is suggested to people never explores; this is for tries that a program makes.
 */
import { spread } from "./confidence.ts";
import type { Ranked } from "./rank.ts";

/** How far above its mean an action is given the benefit of the doubt, in standard deviations. */
const OPTIMISM = 1.5;

export interface Exploration {
  /** Tries that went to another action than the suggestion, and all tries, for this fingerprint. */
  readonly explored: number;
  readonly tries: number;
  /** The share of tries that may explore. 0 turns it off. */
  readonly shareMax: number;
  readonly isSafe: (action: string) => boolean;
}

/** The action to try; the first of `ranked` unless there is room and reason to learn about another. */
export function actionToTry(ranked: readonly Ranked[], { explored, tries, shareMax, isSafe }: Exploration): string | undefined {
  const first = ranked[0];
  if (first === undefined || explored + 1 > shareMax * (tries + 1)) return first?.action;
  let best = first;
  let bestBound = first.rank;
  for (const each of ranked) {
    if (each === first || !isSafe(each.action)) continue;
    const bound = each.rank + OPTIMISM * spread({ confidence: each.rank, weight: each.weight });
    if (bound > bestBound) [best, bestBound] = [each, bound];
  }
  return best.action;
}
