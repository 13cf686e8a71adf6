/** The rules in use, and ready to be asked: for the catalogue of actions and the signatures of causes as they are. */
import type { Events } from "../../observe/events.ts";
import type { Catalogue } from "../actions/catalogue.ts";
import type { CauseFinder } from "../causes/cause-of.ts";
import type { Documents } from "../documents.ts";
import { createBook } from "./book.ts";
import { DEFAULT_RULES } from "./defaults.ts";
import { ruleReader, ruleToJson } from "./parse-rule.ts";
import { byOrder, type Rule, type Rules } from "./rule.ts";
import { prepareRules, type RuleSet, usableRules } from "./rule-set.ts";

export type RuleBook = ReturnType<typeof createRuleBook>;

/** An action may be registered in another process only: then its rule is skipped here, and kept. */
const readStored = ruleReader({ has: () => true });

export function createRuleBook(
  documents: Documents,
  events: Events,
  usable: Catalogue["usable"],
  finder: () => Promise<CauseFinder>,
) {
  const book = createBook<Rule>({
    ...{ documents, events, kind: "rule", shipped: DEFAULT_RULES, json: ruleToJson },
    ordered: (rules) => [...rules].sort(byOrder),
    parse: async (value, stored) => (stored ? readStored : ruleReader(await usable()))(value),
    check: async (rules) => void prepareRules(rules, await usable()),
  });
  let made: { readonly rules: Rules; readonly set: RuleSet } | undefined;
  return {
    ...book,
    async set(): Promise<RuleSet> {
      const [rules, actions, causes] = [await book.all(), await usable(), await finder()];
      if (made?.rules !== rules || made.set.actions !== actions || made.set.causes !== causes)
        made = { rules, set: { ...usableRules(rules, actions), causes } };
      return made.set;
    },
  };
}
