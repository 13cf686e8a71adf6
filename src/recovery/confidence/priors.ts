/**
 * What is taken for granted before outcomes come. The numbers were fitted on simulated worlds (decision 0032) and are stated here, once:
 * each kind of failure has one action that heals it, or none; the first rule names it in so many cases; an action that is the cure
 * heals so often, another one so often.
 */

/** The first rule's action is the cure of so many kinds; of so many nothing is; the other actions share the rest. */
export const CURE = { ofFirstRule: 0.6, none: 0.05 } as const;

/** Successes and failures that stand for what the cure, and what another action, does before anything is known of it. */
export const HEALS = { cure: { successes: 8.7, failures: 2.7 }, other: { successes: 1.8, failures: 2.4 } } as const;

/** What a rule's score is worth, in executions of this kind: so long does a guess correct what was fitted. */
export const GUESS = 3;

/** In the order of suggestions: what being the cure is worth beside healing, and after how many healed executions it is worth nothing. */
export const LIKELY = { worth: 1.5, until: 4 } as const;

/** The score of an action that no rule proposes: below what is selected, so that only outcomes bring it up. */
export const PRIOR_WITHOUT_RULE = 0.2;

/** A kind tried n times has a voice of n / (n + VOICE) on the levels above it. */
export const VOICE = 1;

/** How many executions of this kind a voice of another kind is worth, and all together at most; of one cause by how alike its kinds are. */
export const LEVELS = {
  cause: { worth: 3, max: 8 },
  all: { worth: 0.05, max: 0.5 },
} as const;

/** The variance between causes at which their kinds are taken for strangers, and for one; before anything is known, worth so many pairs. */
export const ALIKE = { none: 0.015, full: 0.045, before: 0.03, pairs: 10 } as const;
