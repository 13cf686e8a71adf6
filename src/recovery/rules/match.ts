/** Asks a condition: whether it holds, and what each part wanted and found. Each part is visited at most once. */
import { MakegoodError } from "../../message/errors.ts";
import { SURE } from "../causes/signature.ts";
import { decayed, successShare, weightOf } from "../confidence/outcome-counts.ts";
import { beginsWith, codeMeant, isCode, wordsOf } from "./code-words.ts";
import { fitsGlob } from "./glob.ts";
import type { PreparedInput } from "./input.ts";
import { compilePattern, type Pattern } from "./pattern.ts";
import type { CauseCondition, CodeCondition, Condition, HistoryCondition, PatternField } from "./rule.ts";

/** One part of a condition and what it met. */
export interface Fact {
  /** Such as `all[0].not.code`. */
  readonly path: string;
  readonly field: string;
  readonly wanted: string;
  readonly found: string;
  readonly matched: boolean;
}

export interface Asking {
  readonly input: PreparedInput;
  readonly facts: Fact[];
  /** The action that the first history condition without an action found; nothing under a `not` sets it. */
  fromHistory: string | undefined;
  /** How much of a rule's score is left where it hangs on a cause that is vague. */
  share: number;
}

export type Matcher = (asking: Asking) => boolean;

type Met = Pick<Fact, "field" | "found" | "matched">;

const EXCERPT_CHARS = 80;

function matcher(path: string, wanted: string, meet: (asking: Asking) => Met): Matcher {
  return (asking) => {
    const { field, found, matched } = meet(asking);
    asking.facts.push({ path, field, wanted, found, matched });
    return matched;
  };
}

/** Patterns are compiled into `patterns`; one that does not compile throws what is wrong with it. */
export function matcherOf(condition: Condition, patterns: Pattern[], path = "", inNot = false): Matcher {
  const at = (name: string): string => (path === "" ? name : `${path}.${name}`);
  const list = (name: string, conditions: readonly Condition[]): Matcher[] =>
    conditions.map((each, i) => matcherOf(each, patterns, at(`${name}[${i}]`), inNot));
  if ("all" in condition) {
    const parts = list("all", condition.all);
    return (asking) => parts.every((part) => part(asking));
  }
  if ("any" in condition) {
    const parts = list("any", condition.any);
    return (asking) => parts.some((part) => part(asking));
  }
  if ("not" in condition) {
    const part = matcherOf(condition.not, patterns, at("not"), true);
    return (asking) => !part(asking);
  }
  if ("code" in condition) return codeMatcher(condition.code, at("code"));
  if ("cause" in condition) return causeMatcher(condition.cause, at("cause"), inNot);
  if ("pattern" in condition) return patternMatcher(condition.pattern.field, condition.pattern.matches, patterns, at("pattern"));
  if ("topic" in condition) return globMatcher("topic", condition.topic, at("topic"));
  if ("skill" in condition) return globMatcher("skill", condition.skill, at("skill"));
  if ("history" in condition) return historyMatcher(condition.history, at("history"), inNot);
  return matcher(at("occurrences"), `at least ${condition.occurrences}`, ({ input: { occurrences } }) => {
    return { field: "occurrences", found: String(occurrences), matched: occurrences >= condition.occurrences };
  });
}

function codeMatcher({ is = [], prefix = [], class: classes = [] }: CodeCondition, path: string): Matcher {
  const meant = is.map(codeMeant);
  const prefixes = prefix.map((each) => wordsOf(each));
  const wanted = Object.entries({ is, "begins with": prefix, class: classes })
    .filter(([, values]) => values.length > 0)
    .map(([verb, values]) => `${verb} ${values.join(", ")}`);
  return matcher(path, wanted.join("; or "), ({ input: { code } }) => {
    const matched =
      meant.some((each) => isCode(code, each)) ||
      prefixes.some((each) => beginsWith(code, each)) ||
      classes.some((each) => code.classes.has(each));
    const read = [...new Set([...code.codes, ...code.classes])].filter((each) => each !== code.name);
    const found = `${code.name === "" ? "no code" : code.name}${read.length > 0 ? ` (${read.join(", ")})` : ""}`;
    return { field: code.from, found, matched };
  });
}

function causeMatcher({ is, certainty: least = 0 }: CauseCondition, path: string, inNot: boolean): Matcher {
  return matcher(path, `${is.join(", ")}${least > 0 ? `, at least ${least}` : ""}`, (asking) => {
    const { cause, detail, certainty, evidence } = asking.input.cause;
    const name = detail === null ? cause : `${cause}.${detail}`;
    const matched = certainty >= least && is.some((each) => each === cause || each === name);
    if (matched && !inNot && certainty < SURE) asking.share = Math.min(asking.share, certainty);
    return { field: "cause", found: matched ? `${name}: ${evidence}` : name, matched };
  });
}

function patternMatcher(field: PatternField, source: string, patterns: Pattern[], path: string): Matcher {
  const compiled = compilePattern(source);
  if (!compiled.ok) throw new MakegoodError("invalid_config", `${path}: ${compiled.error}`, { pattern: source });
  const { pattern } = compiled;
  patterns.push(pattern);
  return matcher(path, `matches ${source}`, ({ input: { fields } }) => {
    const matched = pattern.test(fields[field]);
    const found = matched ? pattern.excerpt(fields[field], EXCERPT_CHARS).replace(/\p{Cc}+/gu, " ") : "";
    return { field, found, matched };
  });
}

function globMatcher(field: "topic" | "skill", globs: readonly string[], path: string): Matcher {
  return matcher(path, `one of ${globs.join(", ")}`, ({ input: { fields } }) => {
    const text = fields[field];
    return { field, found: text.slice(0, EXCERPT_CHARS), matched: text !== "" && globs.some((glob) => fitsGlob(glob, text)) };
  });
}

/** Of several actions that worked often enough, the one that worked most; then the one tried more, then the smaller code. */
function historyMatcher({ action: only, minOccurrences, minSuccess }: HistoryCondition, path: string, inNot: boolean): Matcher {
  const wanted = `${only ?? "an action"} with at least ${minOccurrences} outcomes, ${minSuccess} of them healed`;
  return matcher(path, wanted, (asking) => {
    const { evidence, at } = asking.input;
    const [best] = [...evidence]
      .flatMap(([action, { own }]) => {
        if (own === undefined || (only !== undefined && only !== action)) return [];
        const now = decayed(own, at);
        return [{ action, share: successShare(now), weight: weightOf(now) }];
      })
      // Rounded: three outcomes of this morning are three outcomes, though each weighs a little less than one by now.
      .filter(({ share, weight }) => Math.round(weight) >= minOccurrences && share >= minSuccess)
      .sort((a, b) => b.share - a.share || b.weight - a.weight || (a.action < b.action ? -1 : 1));
    if (best !== undefined && only === undefined && !inNot) asking.fromHistory ??= best.action;
    const found = best === undefined ? "none" : `${best.action}: ${best.share.toFixed(2)} of ${best.weight.toFixed(1)}`;
    return { field: "history", found, matched: best !== undefined };
  });
}
