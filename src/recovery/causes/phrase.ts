/** The phrases of signatures: RE2 on words. A pattern is asked only where a text it cannot do without stands. */
import { MakegoodError } from "../../message/errors.ts";
import { type Compiled, compilePattern, type Pattern } from "../rules/pattern.ts";

export interface Phrase {
  readonly source: string;
  /** The part of the words that it matches; undefined: it does not. */
  find(words: string): string | undefined;
}

export const PHRASE_LIMITS = { patternCharsMax: 700, programMax: 900 } as const;
const EXCERPT_CHARS = 80;
/** A shorter text is in too many others to spare anything. */
const ANCHOR_CHARS_MIN = 3;

/** `… ` stands for up to four words. */
export function compilePhrase(source: string): Compiled {
  return compilePattern(`(?m)\\b(?:${source.replaceAll("… ", "(?:\\w+ ){0,4}")})\\b`, PHRASE_LIMITS);
}

/** One for each alternative of a source. */
export function phrasesOf(source: string): Phrase[] {
  return alternativesOf(source).map((one) => {
    const anchors = anchorsIn(one);
    let pattern: Pattern | undefined;
    const compiled = (): Pattern => {
      const made = compilePhrase(one);
      if (!made.ok) throw new MakegoodError("invalid_config", `The words ${one}: ${made.error}`, { words: one });
      return made.pattern;
    };
    return {
      source: one,
      find(words) {
        if (anchors !== undefined && !anchors.some((anchor) => words.includes(anchor))) return undefined;
        pattern ??= compiled();
        return pattern.test(words) ? pattern.excerpt(words, EXCERPT_CHARS).trim() : undefined;
      },
    };
  });
}

/** "a|b(c|d)" is "a" and "b(c|d)". */
function alternativesOf(source: string): string[] {
  const found: string[] = [];
  let depth = 0;
  let from = 0;
  for (let i = 0; i < source.length; i++) {
    if (source[i] === "(") depth++;
    else if (source[i] === ")") depth--;
    else if (source[i] === "|" && depth === 0) {
      found.push(source.slice(from, i));
      from = i + 1;
    }
  }
  return [...found, source.slice(from)];
}

/** Texts of which one stands in every match; undefined: none is sure. */
function anchorsOf(source: string): string[] | undefined {
  const all = alternativesOf(source).map(anchorsIn);
  return all.every((each) => each !== undefined) ? all.flat() : undefined;
}

const ITEM = /\\.|\[[^\]]*\]|[\s\S]/y;
const QUANTIFIER = /[?*+]|\{\d[^}]*\}/y;

/** Of one alternative: its longest literal text, or those of a group that cannot be left out. */
function anchorsIn(source: string): string[] | undefined {
  const found: string[][] = [];
  let literal = "";
  const flush = (): void => {
    if (literal.length >= ANCHOR_CHARS_MIN) found.push([literal]);
    literal = "";
  };
  for (let at = 0; at < source.length; ) {
    const group = source[at] === "(" ? groupAt(source, at) : undefined;
    ITEM.lastIndex = at;
    const item = group ?? ITEM.exec(source)?.[0] ?? "";
    QUANTIFIER.lastIndex = at + item.length;
    const times = QUANTIFIER.exec(source)?.[0] ?? "";
    if (times === "" && /^[a-z\d ]$/.test(item)) literal += item;
    else flush();
    if (group !== undefined && !/^([?*]|\{0)/.test(times)) {
      const inside = anchorsOf(group.slice(1, -1).replace(/^\?:/, ""));
      if (inside !== undefined) found.push(inside);
    }
    at += item.length + times.length;
  }
  flush();
  const shortest = (list: readonly string[]): number => Math.min(...list.map(({ length }) => length));
  return found.sort((a, b) => shortest(b) - shortest(a))[0];
}

function groupAt(source: string, from: number): string {
  let depth = 0;
  for (let i = from; i < source.length; i++) {
    if (source[i] === "(") depth++;
    else if (source[i] === ")" && --depth === 0) return source.slice(from, i + 1);
  }
  return source.slice(from);
}
