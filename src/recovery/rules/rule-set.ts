/**
 * Rules made ready: sorted once in their order, patterns compiled once, no larger than a set may be. A rule that cannot be asked
 * (its action is gone from the catalogue, its pattern is not taken) is kept with the reason, so that one bad rule never stops the
 * others.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { CauseFinder } from "../causes/cause-of.ts";
import { type ActionPriorities, actionOrder } from "./actions.ts";
import { type Matcher, matcherOf } from "./match.ts";
import { shown } from "./mistakes.ts";
import type { Pattern } from "./pattern.ts";
import { byOrder, FROM_HISTORY, RULE_LIMITS, type Rule, type Rules } from "./rule.ts";

export interface PreparedRule {
  readonly rule: Rule;
  readonly matches: Matcher | undefined;
  /** Why it is not asked. */
  readonly skipped: string | undefined;
  /** It is not asked because the set is too large. */
  readonly pastLimit: boolean;
}

export interface RuleSet {
  /** In the order in which they are asked. */
  readonly rules: readonly PreparedRule[];
  readonly actions: ActionPriorities;
  /** Codes of the catalogue, in their order. */
  readonly actionOrder: readonly string[];
  /** How causes are found; absent: by the shipped catalogue. */
  readonly causes?: CauseFinder;
}

/** For saving a rule: throws what speaks against using them all together. */
export function prepareRules(rules: Rules, actions: ActionPriorities): RuleSet {
  const ids = new Set<string>();
  for (const { id } of rules) {
    if (ids.has(id)) throw refused(`two rules with the id ${shown(id)}`);
    ids.add(id);
  }
  const set = usableRules(rules, actions);
  const past = set.rules.find(({ pastLimit }) => pastLimit);
  if (past !== undefined) throw refused(`rule ${shown(past.rule.id)} is not asked, ${past.skipped}`);
  return set;
}

/**
 * For asking the rules: each was saved below the limits, but together they may be too many, when two were saved at once or a
 * disabled action is back. A rule past a limit, in the order of the rules, is not asked and says so.
 */
export function usableRules(rules: Rules, actions: ActionPriorities): RuleSet {
  const { rulesMax, programsMax } = RULE_LIMITS;
  let steps = 0;
  const prepared = [...rules].sort(byOrder).map((rule, place): PreparedRule => {
    const { skipped, matches, patterns } = prepare(rule, actions);
    const size = patterns.reduce((sum, pattern) => sum + pattern.size, 0);
    const past =
      place >= rulesMax
        ? `since there are more than ${rulesMax} rules`
        : size > 0 && steps + size > programsMax
          ? `since all patterns may have ${programsMax} steps together: use codes and topics where they do`
          : null;
    if (past !== null) return { rule, matches: undefined, skipped: past, pastLimit: true };
    steps += size;
    return { rule, matches, skipped, pastLimit: false };
  });
  return { rules: prepared, actions, actionOrder: actionOrder(actions) };
}

type Prepared = Pick<PreparedRule, "matches" | "skipped"> & { readonly patterns: readonly Pattern[] };

function prepare(rule: Rule, actions: ActionPriorities): Prepared {
  const skip = (skipped: string) => ({ skipped, matches: undefined, patterns: [] });
  if (!rule.enabled) return skip("disabled");
  if (rule.action !== FROM_HISTORY && !actions.has(rule.action)) {
    return skip(`its action ${shown(rule.action)} is not in the catalogue`);
  }
  const patterns: Pattern[] = [];
  try {
    return { matches: matcherOf(rule.condition, patterns), skipped: undefined, patterns };
  } catch (thrown) {
    return skip(errorText(thrown));
  }
}

function refused(what: string): MakegoodError {
  return new MakegoodError("invalid_config", `These rules cannot be used together: ${what}.`);
}
