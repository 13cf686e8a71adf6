/**
 * The titles that a file of tests gives: the first argument of `it`, `test` and `describe` in all their forms, and the names of a
 * suite's cases. A string that stands anywhere else is no title.
 */
import { parse } from "../house-rules/source.ts";

/** `inRig`: a case of the sinks' suite. */
const CALLED = /(?<![\w$]|(?<!\.\.)\.)(?:it|test|describe|inRig)\b/g;
/** A case of a conformance suite: `"its name": async (scene) => …`, or a shared function. */
const CASE = /^ +(?:async )?(?:"([^"\n]+)"|\[`([^`\n]+)`\])(?:: ?(?:async\b|\(|[a-zA-Z]\w*,?$)|\()/gm;

export function titlesOf(path: string, text: string): string[] {
  const { code } = parse(path, text);
  const called = [...code.matchAll(CALLED)].flatMap((match) => titleAfter(text, code, match.index + match[0].length));
  if (!path.startsWith("src/testing/")) return called;
  return [...called, ...[...text.matchAll(CASE)].map((match) => (match[1] ?? match[2]) as string)];
}

/** `.each<…>(…)("title"`: members, types and brackets are passed until a bracket opens on a string. */
function titleAfter(text: string, code: string, start: number): string[] {
  for (let i = start; ; ) {
    const chain = /^(?:\s*\.\w+|<[^()]*>)*\s*/.exec(code.slice(i, i + 500)) as RegExpExecArray;
    const open = i + chain[0].length;
    if (code[open] !== "(") return [];
    const first = open + 1 + (/^\s*/.exec(code.slice(open + 1)) as RegExpExecArray)[0].length;
    const quote = code[first];
    if (quote === '"' || quote === "'" || quote === "`") return [text.slice(first + 1, closing(text, first, quote))];
    i = afterBracket(code, open);
    if (i === -1) return [];
  }
}

function closing(text: string, start: number, quote: string): number {
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === quote) return i;
  }
  return text.length;
}

function afterBracket(code: string, open: number): number {
  let depth = 0;
  for (let i = open; i < code.length; i++) {
    if (code[i] === "(") depth++;
    if (code[i] === ")" && --depth === 0) return i + 1;
  }
  return -1;
}
