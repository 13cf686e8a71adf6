/**
 * Finds functions in blanked code and counts their own lines, from the parameter list to the closing brace, without those of
 * functions inside (each is counted by itself: a factory that holds several short functions is not one long one). It errs
 * towards seeing a function where there is none, never towards missing a long one.
 */
import { lineAt } from "./source.ts";

export interface FunctionSpan {
  readonly line: number;
  readonly lines: number;
}

interface Frame {
  readonly bracket: string;
  readonly offset: number;
  /** Where the function's header starts, if this brace opens a body. */
  readonly bodyOf: number | null;
  /** Pairs of parentheses that closed directly inside this frame since the last semicolon. */
  groups: Group[];
}

interface Group {
  readonly open: number;
  readonly close: number;
}

const GROUPS_LOOKED_AT = 8;

const CONTROL = new Set(["if", "for", "while", "switch", "catch", "with", "await"]);

/** Drops a trailing `<…>`: type parameters between a name and its parameter list. */
function withoutTypeParameters(head: string): string {
  if (!head.endsWith(">")) return head;
  let depth = 0;
  for (let i = head.length - 1; i >= 0; i--) {
    if (head[i] === ">" && head[i - 1] !== "=") depth++;
    if (head[i] === "<") depth--;
    if (depth === 0) return head.slice(0, i).trimEnd();
  }
  return head;
}

const isReturnType = (text: string): boolean => /^:\s*\S/.test(text) && !/[;=]/.test(text.replaceAll("=>", ""));

/** Where the header of the function starts whose body opens at `brace`; null when the brace opens something else. */
function headerStart(code: string, brace: number, groups: readonly Group[]): number | null {
  const arrow = code
    .slice(Math.max(0, brace - 200), brace)
    .trimEnd()
    .endsWith("=>")
    ? code.lastIndexOf("=>", brace)
    : -1;
  // The parameter list is the nearest group with nothing but a return type behind it; a return type may contain groups itself.
  for (const { open, close } of groups.slice(-GROUPS_LOOKED_AT).reverse()) {
    const between = code.slice(close + 1, arrow === -1 ? brace : arrow).trim();
    if (between !== "" && !isReturnType(between)) continue;
    if (arrow !== -1) return open;
    const name = /[\w$\]]+$/.exec(withoutTypeParameters(code.slice(0, open).trimEnd()))?.[0];
    if (name) return CONTROL.has(name) ? null : open;
  }
  return arrow === -1 ? null : arrow;
}

export function functionSpans(code: string): FunctionSpan[] {
  const spans: FunctionSpan[] = [];
  const top: Frame = { bracket: "", offset: 0, bodyOf: null, groups: [] };
  const stack: Frame[] = [top];
  for (let i = 0; i < code.length; i++) {
    const c = code[i] as string;
    const frame = stack.at(-1) as Frame;
    if (c === "{") stack.push({ bracket: c, offset: i, bodyOf: headerStart(code, i, frame.groups), groups: [] });
    else if (c === "(" || c === "[") stack.push({ bracket: c, offset: i, bodyOf: null, groups: [] });
    else if (c === ";") frame.groups = [];
    else if ((c === ")" || c === "]" || c === "}") && stack.length > 1) {
      stack.pop();
      const parent = stack.at(-1) as Frame;
      if (c === ")") parent.groups.push({ open: frame.offset, close: i });
      if (frame.bodyOf !== null) {
        const line = lineAt(code, frame.bodyOf);
        spans.push({ line, lines: lineAt(code, i) - line + 1 });
      }
    }
  }
  return ownLines(spans);
}

/** Takes the lines of the functions directly inside from each span; a one-line function inside stays part of its line. */
function ownLines(spans: readonly FunctionSpan[]): FunctionSpan[] {
  const sorted = [...spans].sort((a, b) => a.line - b.line || b.lines - a.lines);
  const own = sorted.map((span) => span.lines);
  const around: number[] = [];
  for (const [i, span] of sorted.entries()) {
    const ends = (k: number) => (sorted[k] as FunctionSpan).line + (sorted[k] as FunctionSpan).lines - 1;
    while (around.length > 0 && ends(around.at(-1) as number) < span.line + span.lines - 1) around.pop();
    const parent = around.at(-1);
    if (parent !== undefined && span.lines > 1) own[parent] = (own[parent] as number) - span.lines + 1;
    around.push(i);
  }
  return sorted.map((span, i) => ({ line: span.line, lines: own[i] as number }));
}
