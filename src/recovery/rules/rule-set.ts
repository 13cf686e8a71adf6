/** Rules made ready. One that cannot be asked is kept with the reason, so that one bad rule never stops the others. */
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { CauseFinder } from "../causes/cause-of.ts";
import { type Matcher, matcherOf } from "./match.ts";
import type { Pattern } from "./pattern.ts";
import { byOrder, FROM_HISTORY, RULE_LIMITS, type Rule, type Rules } from "./rule.ts";
import { shown } from "./schema.ts";

export interface PreparedRule {
  readonly rule: Rule;
  readonly matches?: Matcher;
  /** Why it is not asked. */
  readonly skipped?: string;
  /** It is not asked because the set is too large. */
  readonly pastLimit?: boolean;
}

export interface RuleSet {
  /** In the order in which they are asked. */
  readonly rules: readonly PreparedRule[];
  /** Codes of the catalogue, in its order. */
  readonly actions: ReadonlySet<string>;
  /** How causes are found; absent: by the shipped catalogue. */
  readonly causes?: CauseFinder;
}

/** For saving a rule: throws what speaks against using them all together. */
export function prepareRules(rules: Rules, actions: ReadonlySet<string>): RuleSet {
  const twice = rules.find(({ id }, i) => rules.findIndex((other) => other.id === id) < i);
  if (twice !== undefined) throw refused(`two rules with the id ${shown(twice.id)}`);
  const set = usableRules(rules, actions);
  const past = set.rules.find(({ pastLimit }) => pastLimit);
  if (past !== undefined) throw refused(`rule ${shown(past.rule.id)} is not asked, ${past.skipped}`);
  return set;
}

const refused = (what: string) => new MakegoodError("invalid_config", `These rules cannot be used together: ${what}.`);

/**
 * For asking the rules: each was saved below the limits, but together they may be too many, when two were saved at once or a
 * disabled action is back. A rule past a limit, in the order of the rules, is not asked and says so.
 */
export function usableRules(rules: Rules, actions: ReadonlySet<string>): RuleSet {
  const { rulesMax, programsMax } = RULE_LIMITS;
  let steps = 0;
  const prepared = [...rules].sort(byOrder).map((rule, place): PreparedRule => {
    const patterns: Pattern[] = [];
    const ready = prepare(rule, actions, patterns);
    const size = patterns.reduce((sum, pattern) => sum + pattern.size, 0);
    if (place >= rulesMax) return { rule, skipped: `since there are more than ${rulesMax} rules`, pastLimit: true };
    if (size > 0 && steps + size > programsMax) {
      const skipped = `since all patterns may have ${programsMax} steps together: use codes and topics where they do`;
      return { rule, skipped, pastLimit: true };
    }
    steps += size;
    return { rule, ...ready };
  });
  return { rules: prepared, actions };
}

function prepare(rule: Rule, actions: ReadonlySet<string>, patterns: Pattern[]): Omit<PreparedRule, "rule"> {
  if (!rule.enabled) return { skipped: "disabled" };
  if (rule.action !== FROM_HISTORY && !actions.has(rule.action)) {
    return { skipped: `its action ${shown(rule.action)} is not in the catalogue` };
  }
  try {
    return { matches: matcherOf(rule.condition, patterns) };
  } catch (thrown) {
    patterns.length = 0;
    return { skipped: errorText(thrown) };
  }
}
