/** Rules as JSON, in snake_case: below the limits, naming actions that exist, with patterns that match in linear time. */
import { z } from "zod";
import type { Fault } from "../../message/fault.ts";
import { isObject, withNames } from "../../message/json.ts";
import { CAUSES } from "../causes/cause.ts";
import { CODE_CLASSES } from "./known-codes.ts";
import { compilePattern } from "./pattern.ts";
import { type Condition, FROM_HISTORY, PATTERN_FIELDS, RULE_LIMITS, type Rule } from "./rule.ts";
import { code, ENTRY, list, number, object, oneOf, type Parsed, parse, shown, text } from "./schema.ts";

/** The catalogue, as far as a rule needs it; a Map or a Set of codes fits. */
export interface KnownActions {
  has(code: string): boolean;
}

const { textCharsMax, patternCharsMax, countMax, priorityMax, nodesMax, depthMax, patternsMax } = RULE_LIMITS;
const texts = list(text(textCharsMax));
const codes = list(code());

const CODE = object({
  is: codes.optional(),
  prefix: codes.optional(),
  class: list(z.enum(CODE_CLASSES, { error: ({ input }) => unknown(input, "class", CODE_CLASSES) })).optional(),
}).refine((code) => Object.keys(code).length > 0, "needs one of is, prefix, class");

const CAUSE = object({
  is: list(text(textCharsMax, (name) => (isCause(name) ? null : unknown(name, "cause", CAUSES)))),
  certainty: number(0, 1).optional(),
});

const PATTERN = object({
  field: oneOf(PATTERN_FIELDS),
  matches: text(patternCharsMax, (source) => {
    const compiled = compilePattern(source);
    return compiled.ok ? null : compiled.error;
  }),
});

const isCause = (name: string): boolean => CAUSES.some((cause) => cause === name.split(".")[0]);

const unknown = (value: unknown, what: string, known: readonly string[]): string =>
  `${shown(String(value))} is no ${what}; known are ${known.join(", ")}`;

const FROM_HISTORY_FAULT = `${FROM_HISTORY} needs a history condition without an action that must hold for the rule to hold`;

/** Making it takes longer than reading a rule: for many rules make it once. */
export function ruleReader(actions: KnownActions): (value: unknown) => Parsed<Rule> {
  // DR-31: a code that no action has would never be met, or would name something else one day.
  const action = (allowed: (code: string) => boolean) =>
    text(textCharsMax, (code) => (allowed(code) ? null : `${shown(code)} is no action of the catalogue`));
  const history = object({
    action: action((code) => actions.has(code)).optional(),
    min_occurrences: number(1, countMax, "whole"),
    min_success: number(0, 1),
  }).transform(({ min_occurrences: minOccurrences, min_success: minSuccess, ...named }) => ({
    ...named,
    minOccurrences,
    minSuccess,
  }));
  const condition: z.ZodType<Condition> = z.lazy(() => ofOneKind as unknown as z.ZodType<Condition>);
  const kinds = {
    ...{ code: CODE, cause: CAUSE, pattern: PATTERN, topic: texts, skill: texts },
    ...{ occurrences: number(1, countMax, "whole"), history },
    ...{ all: list(condition, nodesMax), any: list(condition, nodesMax), not: condition },
  };
  const ofOneKind = object(kinds)
    .partial()
    .refine((one) => Object.keys(one).length === 1, `must have exactly one of ${Object.keys(kinds).join(", ")}`);
  const rule = object({
    ...ENTRY,
    name: text(textCharsMax),
    priority: number(0, priorityMax, "whole"),
    condition,
    action: action((code) => code === FROM_HISTORY || actions.has(code)),
    score: number(0, 1),
  }).refine((read) => read.action !== FROM_HISTORY || choosesAction(read.condition), {
    path: ["action"],
    error: FROM_HISTORY_FAULT,
  });
  return (value) => {
    const tooLarge = isObject(value) ? treeFault(value.condition) : null;
    return tooLarge === null ? parse(rule, value) : { ok: false, mistakes: [tooLarge] };
  };
}

/** Looked at before it is read: a tree without end, or one in a circle, is not walked to its end. */
function treeFault(tree: unknown): Fault | null {
  let nodes = 0;
  let patterns = 0;
  const faultAt = (node: unknown, field: string, depth: number): Fault | null => {
    if (++nodes > nodesMax) return { field, detail: `more than ${nodesMax} conditions in one rule` };
    if (depth > depthMax) return { field, detail: `nested deeper than ${depthMax}` };
    if (!isObject(node)) return null;
    if ("pattern" in node && ++patterns > patternsMax) return { field, detail: `more than ${patternsMax} patterns in one rule` };
    for (const [name, inside] of branchesOf(node)) {
      const fault = faultAt(inside, `${field}.${name}`, depth + 1);
      if (fault !== null) return fault;
    }
    return null;
  };
  return faultAt(tree, "condition", 1);
}

/** A list that is too long is one mistake, without a look into it. */
function branchesOf({ all, any, not }: Readonly<Record<string, unknown>>): [name: string, inside: unknown][] {
  const lists = Object.entries({ all, any }).flatMap(([name, list]) =>
    Array.isArray(list) && list.length <= nodesMax ? list.map((each, i): [string, unknown] => [`${name}[${i}]`, each]) : [],
  );
  return not === undefined ? lists : [...lists, ["not", not]];
}

/** Whether it cannot hold without a history condition that names the action: "it did not work before" names none. */
function choosesAction(condition: Condition): boolean {
  if ("history" in condition) return condition.history.action === undefined;
  if ("all" in condition) return condition.all.some(choosesAction);
  return "any" in condition && condition.any.every(choosesAction);
}

const WIRE_NAMES = { minOccurrences: "min_occurrences", minSuccess: "min_success" };

/** The form that a reader reads. */
export function ruleToJson(rule: Rule): Record<string, unknown> {
  return JSON.parse(JSON.stringify(rule), (name, value) => (name === "history" ? withNames(value, WIRE_NAMES) : value));
}
