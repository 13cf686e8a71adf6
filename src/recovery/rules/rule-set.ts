/**
 * Rules made ready: sorted once in their order, patterns compiled once, within the limits of a set. A rule that cannot be asked (its
 * action is gone from the catalogue, its pattern is not taken) is kept with the reason, so that one bad rule never stops the others.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
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
}

export interface RuleSet {
  /** In the order in which they are asked. */
  readonly rules: readonly PreparedRule[];
  readonly actions: ActionPriorities;
  /** Codes of the catalogue, in their order. */
  readonly actionOrder: readonly string[];
}

export function prepareRules(rules: Rules, actions: ActionPriorities): RuleSet {
  if (rules.length > RULE_LIMITS.rulesMax) throw refused(`${rules.length} rules, at most ${RULE_LIMITS.rulesMax}`);
  const ids = new Set<string>();
  let steps = 0;
  const prepared = [...rules].sort(byOrder).map((rule): PreparedRule => {
    if (ids.has(rule.id)) throw refused(`two rules with the id ${shown(rule.id)}`);
    ids.add(rule.id);
    const { skipped, matches, patterns } = prepare(rule, actions);
    for (const { size } of patterns) steps += size;
    return { rule, matches, skipped };
  });
  if (steps > RULE_LIMITS.programsMax) {
    throw refused(`patterns of ${steps} steps together, at most ${RULE_LIMITS.programsMax}: use codes and topics where they do`);
  }
  return { rules: prepared, actions, actionOrder: actionOrder(actions) };
}

function prepare(rule: Rule, actions: ActionPriorities): Omit<PreparedRule, "rule"> & { readonly patterns: readonly Pattern[] } {
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

export type RuleEdit =
  | { readonly ok: true; readonly rules: Rules; readonly rule: Rule }
  /** Somebody else edited it since: `version` is the present one, 0 when there is no such rule. */
  | { readonly ok: false; readonly version: number };

/** Adds a rule or replaces the one with its id. `from` is the version that the edit was made from, 0 for a new rule. */
export function withRule(rules: Rules, rule: Rule, from: number): RuleEdit {
  const version = rules.find(({ id }) => id === rule.id)?.version ?? 0;
  if (version !== from) return { ok: false, version };
  const edited = { ...rule, version: version + 1 };
  return { ok: true, rule: edited, rules: [...rules.filter(({ id }) => id !== rule.id), edited] };
}

export function withoutRule(rules: Rules, id: string): Rules {
  return rules.filter((rule) => rule.id !== id);
}
