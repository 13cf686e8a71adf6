/**
 * Rules as JSON: read from outside with every mistake named at once, and written back in the same form. What comes out of here is
 * below the limits, names only actions that exist, and has patterns that match in linear time.
 */
import type { Parsed } from "./book.ts";
import { Mistakes, shown } from "./mistakes.ts";
import { ConditionReader } from "./parse-condition.ts";
import { type Condition, FROM_HISTORY, RULE_LIMITS, type Rule } from "./rule.ts";

/** The catalogue, as far as a rule needs it; a Map or a Set of codes fits. */
export interface KnownActions {
  has(code: string): boolean;
}

const MEMBERS = ["id", "version", "name", "priority", "enabled", "condition", "action", "score"];
const ID = /^[a-z0-9][a-z0-9_.-]{0,63}$/;

export function parseRule(value: unknown, actions: KnownActions): Parsed<Rule> {
  const mistakes = new Mistakes();
  const rule = readRule(value, "", actions, mistakes);
  return rule === undefined || mistakes.some ? { ok: false, mistakes: mistakes.list } : { ok: true, value: rule };
}

function readRule(value: unknown, path: string, actions: KnownActions, mistakes: Mistakes): Rule | undefined {
  const given = mistakes.object(value, path, MEMBERS);
  if (given === undefined) return undefined;
  const at = (name: string): string => (path === "" ? name : `${path}.${name}`);
  const entry = readEntry(given, path, mistakes);
  const name = mistakes.text(given.name, at("name"), RULE_LIMITS.textCharsMax);
  const priority = mistakes.number(given.priority, at("priority"), 0, RULE_LIMITS.priorityMax, true);
  const score = mistakes.number(given.score, at("score"), 0, 1, false);
  const condition = new ConditionReader(mistakes, (code) => actions.has(code)).read(given.condition, at("condition"));
  const action = mistakes.text(given.action, at("action"), RULE_LIMITS.textCharsMax);
  if (action === FROM_HISTORY) {
    if (condition !== undefined && !choosesAction(condition)) {
      mistakes.add(
        at("action"),
        `${FROM_HISTORY} needs a history condition without an action that must hold for the rule to hold`,
      );
    }
  } else if (action !== undefined && !actions.has(action))
    mistakes.add(at("action"), `${shown(action)} is no action of the catalogue`);
  if (entry === undefined || name === undefined || priority === undefined) return undefined;
  if (score === undefined || condition === undefined || action === undefined) return undefined;
  return { ...entry, name, priority, condition, action, score };
}

/** What every document of a book has. */
export function readEntry(
  given: Readonly<Record<string, unknown>>,
  path: string,
  mistakes: Mistakes,
): Pick<Rule, "id" | "version" | "enabled"> | undefined {
  const at = (name: string): string => (path === "" ? name : `${path}.${name}`);
  const id = mistakes.text(given.id, at("id"), 64);
  if (id !== undefined && !ID.test(id))
    mistakes.add(at("id"), "must be small letters, digits, _ . and -, and begin with one of the first two");
  const version = mistakes.number(given.version ?? 1, at("version"), 1, RULE_LIMITS.countMax, true);
  const enabled = given.enabled ?? true;
  if (typeof enabled !== "boolean") mistakes.add(at("enabled"), "must be true or false");
  return id === undefined || version === undefined ? undefined : { id, version, enabled: enabled === true };
}

/** Whether it cannot hold without a history condition that names the action: "it did not work before" names none. */
function choosesAction(condition: Condition): boolean {
  if ("history" in condition) return condition.history.action === undefined;
  if ("all" in condition) return condition.all.some(choosesAction);
  return "any" in condition && condition.any.every(choosesAction);
}

/** The form that `parseRule` reads. */
export function ruleToJson(rule: Rule): Record<string, unknown> {
  return { ...rule, condition: conditionToJson(rule.condition) };
}

function conditionToJson(condition: Condition): Record<string, unknown> {
  if ("all" in condition) return { all: condition.all.map(conditionToJson) };
  if ("any" in condition) return { any: condition.any.map(conditionToJson) };
  if ("not" in condition) return { not: conditionToJson(condition.not) };
  if (!("history" in condition)) return { ...condition };
  const { action, minOccurrences, minSuccess } = condition.history;
  return { history: { ...(action === undefined ? {} : { action }), min_occurrences: minOccurrences, min_success: minSuccess } };
}
