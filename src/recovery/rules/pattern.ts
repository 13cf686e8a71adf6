/** Patterns of rules, by RE2: linear in the text whatever the pattern is. Large programs are refused, texts cut to a limit. */
import { RE2JS, RE2Set } from "re2js";
import { errorText } from "../../message/errors.ts";
import { RULE_LIMITS } from "./rule.ts";

export interface Pattern {
  readonly source: string;
  /** Instructions: what a character of text costs at worst. */
  readonly size: number;
  test(text: string): boolean;
  /** The part that matches, cut to `charsMax`; empty where looking for it would cost too much. */
  excerpt(text: string, charsMax: number): string;
}

export type Compiled = { readonly ok: true; readonly pattern: Pattern } | { readonly ok: false; readonly error: string };

interface PatternLimits {
  readonly patternCharsMax: number;
  readonly programMax: number;
}

/** A count above this is refused unread: `(x{1000}){1000}` is a short text and a huge program. */
const REPEAT_MAX = 64;

/** So many counts in one pattern: nested ones multiply. */
const REPEATS_MAX = 8;

/** Finding where a match lies costs more than finding that there is one; above this many steps it is not shown. */
const EXCERPT_STEPS_MAX = 250_000;

/** I10: what the matcher of one pattern may remember. Without it, a hostile pattern takes 8 MB. */
const CACHE_BYTES_MAX = 262_144;

const FLAGS = RE2JS.CASE_INSENSITIVE | RE2JS.DISABLE_UNICODE_GROUPS;

function repeatTooLarge(source: string): boolean {
  let counts = 0;
  for (const [, low = "", high = ""] of source.matchAll(/\{(\d+),?(\d*)\}/g)) {
    if (++counts > REPEATS_MAX) return true;
    if (low.length > 4 || high.length > 4 || Number(low) > REPEAT_MAX || Number(high || "0") > REPEAT_MAX) return true;
  }
  return false;
}

/** Not sensitive to case: many authors write error texts. `(?-i)` in the pattern turns that off. */
export function compilePattern(source: string, limits: PatternLimits = RULE_LIMITS): Compiled {
  if (source === "") return { ok: false, error: "an empty pattern matches everything; leave the condition out" };
  if (source.length > limits.patternCharsMax) {
    return { ok: false, error: `a pattern has at most ${limits.patternCharsMax} characters` };
  }
  if (repeatTooLarge(source))
    return { ok: false, error: `a repetition counts to at most ${REPEAT_MAX}, and a pattern has at most ${REPEATS_MAX} of them` };
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(source, FLAGS);
  } catch (thrown) {
    return { ok: false, error: `not a pattern of RE2 (no back-references, no look-around): ${errorText(thrown).slice(0, 200)}` };
  }
  const size = compiled.programSize();
  if (size > limits.programMax) {
    return { ok: false, error: `compiles to ${size} steps, at most ${limits.programMax}: make it shorter or repeat less` };
  }
  const matcher = new RE2Set(RE2Set.UNANCHORED, FLAGS, CACHE_BYTES_MAX);
  matcher.add(source);
  return {
    ok: true,
    pattern: {
      source,
      size,
      test: (text) => matcher.match(text).length > 0,
      excerpt: (text, charsMax) => (size * text.length > EXCERPT_STEPS_MAX ? "" : excerptOf(compiled, text, charsMax)),
    },
  };
}

/** Asks for the whole match only: the groups of a pattern would multiply what a character costs. */
function excerptOf(compiled: RE2JS, text: string, charsMax: number): string {
  const found = compiled.matcher(text);
  return found.find() ? text.slice(found.start(), Math.min(found.end(), found.start() + charsMax)) : "";
}
