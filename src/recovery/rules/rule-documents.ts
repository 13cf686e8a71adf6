/** The rules in use, and ready to be asked: for the catalogue of actions and the signatures of causes as they are. */
import type { Events } from "../../observe/events.ts";
import type { Catalogue } from "../actions/catalogue.ts";
import type { CauseFinder } from "../causes/cause-of.ts";
import type { Documents } from "../documents.ts";
import type { ActionPriorities } from "./actions.ts";
import { type Book, createBook } from "./book.ts";
import { DEFAULT_RULES } from "./defaults.ts";
import { parseRule, ruleToJson } from "./parse-rule.ts";
import { byOrder, type Rule } from "./rule.ts";
import { prepareRules, type RuleSet, usableRules } from "./rule-set.ts";

export interface RuleBook extends Book<Rule> {
  set(): Promise<RuleSet>;
}

export function createRuleBook(options: {
  readonly documents: Documents;
  readonly catalogue: Pick<Catalogue, "priorities">;
  readonly finder: () => Promise<CauseFinder>;
  readonly events: Events;
}): RuleBook {
  const { documents, catalogue, finder, events } = options;
  const book = createBook<Rule>({
    ...{ documents, events, kind: "rule", shipped: DEFAULT_RULES, json: ruleToJson },
    ordered: (rules) => [...rules].sort(byOrder),
    // An action may be registered in another process only: then its rule is skipped here, and kept.
    parse: async (value, stored) => parseRule(value, stored ? { has: () => true } : await catalogue.priorities()),
    check: async (rules) => void prepareRules(rules, await catalogue.priorities()),
  });
  let prepared: { readonly rules: readonly Rule[]; readonly actions: ActionPriorities; readonly set: RuleSet } | undefined;
  return {
    ...book,
    async set() {
      const [rules, actions, causes] = [await book.all(), await catalogue.priorities(), await finder()];
      if (prepared?.rules !== rules || !sameActions(prepared.actions, actions) || prepared.set.causes !== causes) {
        prepared = { rules, actions, set: { ...usableRules(rules, actions), causes } };
      }
      return prepared.set;
    },
  };
}

function sameActions(a: ActionPriorities, b: ActionPriorities): boolean {
  return a.size === b.size && [...a].every(([code, priority]) => b.get(code) === priority);
}
