/**
 * Reads the condition of a rule from untrusted JSON (fields in snake_case). A tree deeper or larger than the limits is refused without
 * being walked to its end, and so is a pattern that RE2 does not take or that compiles to a large program.
 */
import { CAUSES } from "../causes/cause.ts";
import { wordsOf } from "./code-words.ts";
import { CODE_CLASSES } from "./known-codes.ts";
import { type Mistakes, shown } from "./mistakes.ts";
import { compilePattern } from "./pattern.ts";
import {
  type CauseCondition,
  type CodeCondition,
  type Condition,
  type HistoryCondition,
  type PatternField,
  RULE_LIMITS,
} from "./rule.ts";

const KINDS = ["code", "cause", "pattern", "topic", "skill", "occurrences", "history", "all", "any", "not"] as const;
const PATTERN_FIELDS: readonly string[] = ["code", "message", "stack", "topic", "skill"] satisfies PatternField[];

export class ConditionReader {
  private readonly mistakes: Mistakes;
  private readonly isAction: (code: string) => boolean;
  private nodes = 0;
  private patterns = 0;

  constructor(mistakes: Mistakes, isAction: (code: string) => boolean) {
    this.mistakes = mistakes;
    this.isAction = isAction;
  }

  read(value: unknown, path: string, depth = 1): Condition | undefined {
    const { mistakes } = this;
    this.nodes++;
    // Said once: a huge tree is not worth a mistake per node.
    if (this.nodes === RULE_LIMITS.nodesMax + 1) mistakes.add(path, `more than ${RULE_LIMITS.nodesMax} conditions in one rule`);
    if (this.nodes > RULE_LIMITS.nodesMax) return undefined;
    if (depth > RULE_LIMITS.depthMax) {
      mistakes.add(path, `nested deeper than ${RULE_LIMITS.depthMax}`);
      return undefined;
    }
    const given = mistakes.object(value, path, KINDS);
    if (given === undefined) return undefined;
    const kinds = KINDS.filter((each) => each in given);
    const [kind] = kinds;
    if (kind === undefined || kinds.length > 1) {
      mistakes.add(path, `must have exactly one of ${KINDS.join(", ")}`);
      return undefined;
    }
    return this.readKind(kind, given[kind], path === "" ? kind : `${path}.${kind}`, depth);
  }

  private readKind(kind: (typeof KINDS)[number], value: unknown, path: string, depth: number): Condition | undefined {
    const some = <T, C>(read: T | undefined, make: (read: T) => C): C | undefined =>
      read === undefined ? undefined : make(read);
    switch (kind) {
      case "code":
        return some(this.code(value, path), (code) => ({ code }));
      case "cause":
        return some(this.cause(value, path), (cause) => ({ cause }));
      case "pattern":
        return this.pattern(value, path);
      case "topic":
        return some(this.mistakes.texts(value, path), (topic) => ({ topic }));
      case "skill":
        return some(this.mistakes.texts(value, path), (skill) => ({ skill }));
      case "occurrences":
        return some(this.mistakes.number(value, path, 1, RULE_LIMITS.countMax, true), (occurrences) => ({ occurrences }));
      case "history":
        return some(this.history(value, path), (history) => ({ history }));
      case "all":
        return some(this.list(value, path, depth), (all) => ({ all }));
      case "any":
        return some(this.list(value, path, depth), (any) => ({ any }));
      case "not":
        return some(this.read(value, path, depth + 1), (not) => ({ not }));
    }
  }

  private list(value: unknown, path: string, depth: number): Condition[] | undefined {
    const list = this.mistakes.array(value, path, RULE_LIMITS.nodesMax);
    const read = list?.map((each, i) => this.read(each, `${path}[${i}]`, depth + 1));
    return read?.every((each) => each !== undefined) ? (read as Condition[]) : undefined;
  }

  private code(value: unknown, path: string): CodeCondition | undefined {
    const { mistakes } = this;
    const given = mistakes.object(value, path, ["is", "prefix", "class"]);
    if (given === undefined) return undefined;
    const lists = (["is", "prefix", "class"] as const).filter((name) => given[name] !== undefined);
    if (lists.length === 0) mistakes.add(path, "needs one of is, prefix, class");
    const code: { -readonly [K in keyof CodeCondition]: CodeCondition[K] } = {};
    for (const name of lists) {
      const values = mistakes.texts(given[name], `${path}.${name}`);
      values?.forEach((each, i) => {
        const at = `${path}.${name}[${i}]`;
        if (wordsOf(each).length === 0) mistakes.add(at, "has no letter and no digit");
        if (name === "class" && !(CODE_CLASSES as readonly string[]).includes(each)) {
          mistakes.add(at, `${shown(each)} is no class; known are ${CODE_CLASSES.join(", ")}`);
        }
      });
      if (values !== undefined) code[name] = values;
    }
    return code;
  }

  private cause(value: unknown, path: string): CauseCondition | undefined {
    const { mistakes } = this;
    const given = mistakes.object(value, path, ["is", "certainty"]);
    const is = given && mistakes.texts(given.is, `${path}.is`);
    is?.forEach((each, i) => {
      if ((CAUSES as readonly string[]).includes(each.split(".")[0] ?? "")) return;
      mistakes.add(`${path}.is[${i}]`, `${shown(each)} is no cause; known are ${CAUSES.join(", ")}`);
    });
    if (is === undefined || given?.certainty === undefined) return is && { is };
    const certainty = mistakes.number(given.certainty, `${path}.certainty`, 0, 1, false);
    return certainty === undefined ? undefined : { is, certainty };
  }

  private pattern(value: unknown, path: string): Condition | undefined {
    const { mistakes } = this;
    const given = mistakes.object(value, path, ["field", "matches"]);
    if (given === undefined) return undefined;
    const field = given.field;
    if (typeof field !== "string" || !PATTERN_FIELDS.includes(field)) {
      mistakes.add(`${path}.field`, `must be one of ${PATTERN_FIELDS.join(", ")}`);
    }
    if (++this.patterns > RULE_LIMITS.patternsMax) {
      mistakes.add(path, `more than ${RULE_LIMITS.patternsMax} patterns in one rule`);
      return undefined;
    }
    const matches = mistakes.text(given.matches, `${path}.matches`, RULE_LIMITS.patternCharsMax);
    if (matches === undefined) return undefined;
    const compiled = compilePattern(matches);
    if (!compiled.ok) mistakes.add(`${path}.matches`, compiled.error);
    return { pattern: { field: field as PatternField, matches } };
  }

  private history(value: unknown, path: string): HistoryCondition | undefined {
    const { mistakes } = this;
    const given = mistakes.object(value, path, ["action", "min_occurrences", "min_success"]);
    if (given === undefined) return undefined;
    const minOccurrences = mistakes.number(given.min_occurrences, `${path}.min_occurrences`, 1, RULE_LIMITS.countMax, true);
    const minSuccess = mistakes.number(given.min_success, `${path}.min_success`, 0, 1, false);
    const action =
      given.action === undefined ? undefined : mistakes.text(given.action, `${path}.action`, RULE_LIMITS.textCharsMax);
    // DR-31: a code that no action has would never be met, or would name something else one day.
    if (action !== undefined && !this.isAction(action)) {
      mistakes.add(`${path}.action`, `${shown(action)} is no action of the catalogue`);
    }
    if (minOccurrences === undefined || minSuccess === undefined) return undefined;
    if (action === undefined) return { minOccurrences, minSuccess };
    return { action, minOccurrences, minSuccess };
  }
}
