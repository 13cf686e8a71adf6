/**
 * Makes a condition ready to be asked, and asks it: whether it holds, and for every part that was looked at what it wanted and what
 * it found. Parts that can no longer change the answer are not looked at. Each part is visited at most once.
 */
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

const EXCERPT_CHARS = 80;

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
  const wanted = `at least ${condition.occurrences}`;
  return ({ input, facts }) => {
    const matched = input.occurrences >= condition.occurrences;
    facts.push({ path: at("occurrences"), field: "occurrences", wanted, found: String(input.occurrences), matched });
    return matched;
  };
}

function codeMatcher({ is = [], prefix = [], class: classes = [] }: CodeCondition, path: string): Matcher {
  const meant = is.map(codeMeant);
  const prefixes = prefix.map((each) => wordsOf(each));
  const wanted = [
    ...(is.length > 0 ? [`is ${is.join(", ")}`] : []),
    ...(prefix.length > 0 ? [`begins with ${prefix.join(", ")}`] : []),
    ...(classes.length > 0 ? [`class ${classes.join(", ")}`] : []),
  ].join("; or ");
  return ({ input: { code }, facts }) => {
    const matched =
      meant.some((each) => isCode(code, each)) ||
      prefixes.some((each) => beginsWith(code, each)) ||
      classes.some((each) => code.classes.has(each));
    const read = [...code.codes, ...code.classes].filter((each, i, all) => each !== code.name && all.indexOf(each) === i);
    const found = `${code.name === "" ? "no code" : code.name}${read.length > 0 ? ` (${read.join(", ")})` : ""}`;
    facts.push({ path, field: code.from, wanted, found, matched });
    return matched;
  };
}

function causeMatcher({ is, certainty = 0 }: CauseCondition, path: string, inNot: boolean): Matcher {
  const wanted = `${is.join(", ")}${certainty > 0 ? `, at least ${certainty}` : ""}`;
  return (asking) => {
    const { cause, detail, certainty: certain, evidence } = asking.input.cause;
    const name = detail === null ? cause : `${cause}.${detail}`;
    const matched = certain >= certainty && is.some((each) => each === cause || each === name);
    if (matched && !inNot && certain < SURE) asking.share = Math.min(asking.share, certain);
    asking.facts.push({ path, field: "cause", wanted, found: matched ? `${name}: ${evidence}` : name, matched });
    return matched;
  };
}

function patternMatcher(field: PatternField, source: string, patterns: Pattern[], path: string): Matcher {
  const compiled = compilePattern(source);
  if (!compiled.ok) throw new MakegoodError("invalid_config", `${path}: ${compiled.error}`, { pattern: source });
  const { pattern } = compiled;
  patterns.push(pattern);
  return ({ input, facts }) => {
    const text = input.fields[field];
    const matched = pattern.test(text);
    const found = (matched ? pattern.excerpt(text, EXCERPT_CHARS) : "").replace(/\p{Cc}+/gu, " ");
    facts.push({ path, field, wanted: `matches ${source}`, found, matched });
    return matched;
  };
}

function globMatcher(field: "topic" | "skill", globs: readonly string[], path: string): Matcher {
  const wanted = `one of ${globs.join(", ")}`;
  return ({ input, facts }) => {
    const text = input.fields[field];
    const matched = text !== "" && globs.some((glob) => fitsGlob(glob, text));
    facts.push({ path, field, wanted, found: text.slice(0, EXCERPT_CHARS), matched });
    return matched;
  };
}

/** Of several actions that worked often enough, the one that worked most; then the one tried more, then the smaller code. */
function historyMatcher(wants: HistoryCondition, path: string, inNot: boolean): Matcher {
  const { action: only, minOccurrences, minSuccess } = wants;
  const wanted = `${only ?? "an action"} with at least ${minOccurrences} outcomes, ${minSuccess} of them healed`;
  return (asking) => {
    const { evidence, at } = asking.input;
    let best: { action: string; share: number; weight: number } | undefined;
    for (const [action, { own }] of evidence) {
      if (own === undefined || (only !== undefined && only !== action)) continue;
      const now = decayed(own, at);
      const [share, weight] = [successShare(now), weightOf(now)];
      // Rounded: three outcomes of this morning are three outcomes, though each weighs a little less than one by now.
      if (Math.round(weight) < minOccurrences || share < minSuccess) continue;
      const better = best === undefined ? 1 : share - best.share || weight - best.weight || (action < best.action ? 1 : -1);
      if (better > 0) best = { action, share, weight };
    }
    if (best !== undefined && only === undefined && !inNot) asking.fromHistory ??= best.action;
    const found = best === undefined ? "none" : `${best.action}: ${best.share.toFixed(2)} of ${best.weight.toFixed(1)}`;
    asking.facts.push({ path, field: "history", wanted, found, matched: best !== undefined });
    return best !== undefined;
  };
}
