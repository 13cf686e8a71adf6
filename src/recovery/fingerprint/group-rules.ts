/** What people decided about groups, before anything is learned; the more particular rule wins, then the smaller id. */
import { MakegoodError } from "../../message/errors.ts";
import { entry } from "./families.ts";
import { templateId } from "./learner.ts";
import { type Token, tokenise, VARIABLE } from "./tokens.ts";

export interface GroupRule {
  readonly id: string;
  readonly kind: "merge" | "split";
  readonly topic: string;
  readonly errorCode: string;
  /** Templates as groups show them; "<*>" stands for any one token. A text that fits one of them belongs to this rule. */
  readonly templates: readonly string[];
  /** Words or phrases that must stand in the text itself, each as a whole: they can name what the mask hides, such as 503. */
  readonly words?: readonly string[];
  readonly reason: string;
}

export type GroupRules = readonly GroupRule[];

export const RULE_LIMITS = { rulesMax: 1_000, templatesMax: 500, wordsMax: 20 } as const;

function invalid(id: string, what: string): MakegoodError {
  return new MakegoodError("invalid_config", `Group rule ${id}: ${what}.`, { rule: id });
}

export function checkedRule(rule: GroupRule): GroupRule {
  const { id, templates, words = [] } = rule;
  if (id === "") throw invalid("without an id", "give it one");
  if (templates.length > RULE_LIMITS.templatesMax) throw invalid(id, `at most ${RULE_LIMITS.templatesMax} templates`);
  if (words.length > RULE_LIMITS.wordsMax) throw invalid(id, `at most ${RULE_LIMITS.wordsMax} words`);
  if (templates.some((template) => template.trim() === "")) throw invalid(id, "an empty template fits nothing");
  return rule;
}

interface Prepared {
  readonly rule: GroupRule;
  readonly rows: readonly (readonly string[])[];
  /** Constants it asks for: more of them make it more particular. */
  readonly weight: number;
}

const INSIDE = /[\p{L}\p{N}_]/u;
const spaced = (text: string): string => text.replace(/\s+/g, " ").trim();

/** Whether a phrase stands in a text on its own: 500 is not in 15000, "read only" and 10.0.0.1:80 may be anywhere. */
function says(text: string, phrase: string): boolean {
  const inside = (c = ""): boolean => INSIDE.test(c);
  for (let at = text.indexOf(phrase); at >= 0; at = text.indexOf(phrase, at + 1)) {
    const after = at + phrase.length;
    const glued = (inside(phrase[0]) && inside(text[at - 1])) || (inside(phrase.at(-1)) && inside(text[after]));
    if (!glued) return true;
  }
  return false;
}

/** The rules of one topic and code, ready to be asked. */
export class RuleTable {
  private readonly byScope = new Map<string, Prepared[]>();
  private readonly byTemplate = new Map<string, GroupRule>();

  constructor(rules: GroupRules) {
    if (rules.length > RULE_LIMITS.rulesMax) throw invalid("list", `at most ${RULE_LIMITS.rulesMax} rules`);
    for (const rule of rules) {
      checkedRule(rule);
      const rows = rule.templates.map((template) => template.split(" "));
      const constants = Math.min(...rows.map((row) => row.filter((token) => token !== VARIABLE).length));
      const scope = scopeOf(rule.topic, rule.errorCode);
      const weight = constants + 1_000 * (rule.words?.length ?? 0);
      entry(this.byScope, scope, () => []).push({ rule, rows, weight });
      if (rule.kind === "merge") this.remember(scope, rule);
    }
    for (const list of this.byScope.values()) list.sort((a, b) => b.weight - a.weight || (a.rule.id < b.rule.id ? -1 : 1));
  }

  /** Of two rules that name one template the smaller id holds, as everywhere. */
  private remember(scope: string, rule: GroupRule): void {
    for (const text of rule.templates) {
      const id = templateId(scope, text);
      const other = this.byTemplate.get(id);
      if (other === undefined || rule.id < other.id) this.byTemplate.set(id, rule);
    }
  }

  /** The rule that a template, by its id, was merged into by hand. */
  mergedInto(id: string): GroupRule | undefined {
    return this.byTemplate.get(id);
  }

  /** The rule that decides for this text, if one does. */
  find(topic: string, code: string, masked: string, text: string): GroupRule | undefined {
    const list = this.byScope.get(scopeOf(topic, code));
    if (list === undefined) return undefined;
    const tokens = tokenise(masked);
    const said = spaced(text);
    const decides = ({ rule: { words = [] }, rows }: Prepared): boolean =>
      rows.some((row) => fits(row, tokens)) && words.every((word) => says(said, spaced(word)));
    return list.find(decides)?.rule;
  }
}

function fits(row: readonly string[], tokens: readonly Token[]): boolean {
  return row.length === tokens.length && row.every((token, i) => token === VARIABLE || token === tokens[i]?.text);
}

/** Topics and codes hold no line break, so two scopes never read alike. */
export function scopeOf(topic: string, code: string): string {
  return `${topic}\n${code}`;
}
