/**
 * The rules in use: those that are shipped, overlaid by what people stored under the same id. A rule is saved only if it and the whole
 * set with it can be used; a stored rule that cannot be read is left out and said, so that one bad rule never stops the others.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { Fault } from "../../message/fault.ts";
import type { Events } from "../../observe/events.ts";
import type { Catalogue } from "../actions/catalogue.ts";
import type { Documents, StoredDocument } from "../documents.ts";
import { line } from "../provenance.ts";
import type { Actor } from "../recovery.ts";
import type { ActionPriorities } from "./actions.ts";
import { DEFAULT_RULES } from "./defaults.ts";
import { parseRule, ruleToJson } from "./parse-rule.ts";
import { byOrder, type Rule } from "./rule.ts";
import { prepareRules, type RuleSet, usableRules } from "./rule-set.ts";

export interface RuleBook {
  /** In the order in which they are asked. */
  rules(): Promise<Rule[]>;
  /** Ready to be asked, for the catalogue as it is. */
  set(): Promise<RuleSet>;
  put(id: string, text: string, from: number, actor: Actor): Promise<Rule>;
  /** A shipped rule is disabled instead: it would be back with the next start. */
  remove(id: string, from: number, actor: Actor): Promise<void>;
  history(id: string): Promise<StoredDocument[]>;
}

const HISTORY_MAX = 100;
const SHIPPED = new Map(DEFAULT_RULES.map((rule) => [rule.id, rule]));

/** A shipped rule has version 1 before anybody stored anything under its id. */
const shippedVersion = (id: string): number => (SHIPPED.has(id) ? 1 : 0);

export function createRuleBook(options: {
  readonly documents: Documents;
  readonly catalogue: Pick<Catalogue, "priorities">;
  readonly events: Events;
}): RuleBook {
  const { documents, catalogue, events } = options;
  let cached: { readonly revision: number; readonly rules: Rule[] } | undefined;
  let prepared: { readonly rules: Rule[]; readonly actions: ActionPriorities; readonly set: RuleSet } | undefined;

  function read({ id, text, version }: StoredDocument): Rule | null {
    // Its action may be registered in another process only: then it is skipped here, and kept.
    const parsed = parseText(text, { has: () => true });
    if (parsed.ok) return { ...parsed.rule, id, version: version + shippedVersion(id) };
    const errors = parsed.mistakes;
    events.emit({ type: "lifecycle", what: "recovery_rule_unreadable", detail: { rule: id, errors } });
    return null;
  }

  async function rules(): Promise<Rule[]> {
    const revision = await documents.revision("rule");
    if (cached?.revision === revision) return cached.rules;
    const all = new Map(SHIPPED);
    for (const stored of await documents.list("rule")) {
      const rule = read(stored);
      if (rule !== null) all.set(rule.id, rule);
    }
    const list = [...all.values()].sort(byOrder);
    cached = { revision, rules: list };
    return list;
  }

  async function write(event: string, id: string, text: string | null, from: number, actor: Actor): Promise<void> {
    const version = Math.max(0, from - shippedVersion(id));
    const known = (await rules()).find((rule) => rule.id === id)?.version ?? 0;
    const fits = from === known;
    const provenance = [line(event, actor, { ruleId: id, details: { from } })];
    const put = { kind: "rule", id, text, version, actor: actor.actor, provenance } as const;
    const written = fits && (await documents.put(put)).kind === "done";
    if (written) return;
    const now = (await rules()).find((rule) => rule.id === id)?.version ?? 0;
    throw new MakegoodError("version_conflict", `Rule ${id} has version ${now} now, not ${from}: read it again.`, {
      version: now,
    });
  }

  return {
    rules,
    async set() {
      const [list, actions] = [await rules(), await catalogue.priorities()];
      if (prepared?.rules === list && sameActions(prepared.actions, actions)) return prepared.set;
      const set = usableRules(list, actions);
      prepared = { rules: list, actions, set };
      return set;
    },
    async put(id, text, from, actor) {
      const actions = await catalogue.priorities();
      const parsed = parseText(text, actions);
      if (!parsed.ok) throw refused(id, parsed.mistakes);
      if (parsed.rule.id !== id) throw refused(id, [{ field: "id", detail: `must be ${id}, as in the address` }]);
      const others = (await rules()).filter((rule) => rule.id !== id);
      const rule = { ...parsed.rule, version: from + 1 };
      try {
        prepareRules([...others, rule], actions);
      } catch (error) {
        throw refused(id, [{ field: "", detail: errorText(error) }]);
      }
      await write("rule_edited", id, JSON.stringify(ruleToJson(rule)), from, actor);
      return (await rules()).find((each) => each.id === id) ?? rule;
    },
    async remove(id, from, actor) {
      const rule = (await rules()).find((each) => each.id === id);
      if (rule === undefined) throw new MakegoodError("rule_not_found", `There is no rule ${id}.`, { rule: id });
      const shipped = SHIPPED.has(id);
      await write("rule_deleted", id, shipped ? JSON.stringify(ruleToJson({ ...rule, enabled: false })) : null, from, actor);
    },
    history: (id) => documents.history("rule", id, HISTORY_MAX),
  };
}

function parseText(text: string, actions: { has(code: string): boolean }) {
  try {
    return parseRule(JSON.parse(text), actions);
  } catch (error) {
    return { ok: false as const, mistakes: [{ field: "", detail: `is not JSON: ${errorText(error)}` }] };
  }
}

function refused(id: string, mistakes: readonly Fault[]): MakegoodError {
  const { field = "", detail = "" } = mistakes[0] ?? {};
  const said = `${field} ${detail.replace(/\.$/, "")}`.trim();
  const more = mistakes.length > 1 ? ` (and ${mistakes.length - 1} more)` : "";
  return new MakegoodError("invalid_rule", `Rule ${id}: ${said}${more}.`, { errors: mistakes });
}

function sameActions(a: ActionPriorities, b: ActionPriorities): boolean {
  return a.size === b.size && [...a].every(([code, priority]) => b.get(code) === priority);
}
