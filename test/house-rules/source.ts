/**
 * Reads a tree of TypeScript as text: what is code, what is comment, what is imported. TypeScript 7 has no compiler API, so
 * this is a small scanner; it keeps every offset and line, and blanks what a rule must not mistake for code.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

export interface Comment {
  readonly text: string;
  readonly line: number;
}

export interface Import {
  readonly spec: string;
  readonly line: number;
  /** `type`: erased by the compiler; everything else is loaded at run time. */
  readonly kind: "value" | "type";
  readonly form: "import" | "re-export" | "dynamic";
  /** The path inside the tree; null for a package. */
  readonly target: string | null;
}

export interface SourceFile {
  /** From the root of the tree, with forward slashes. */
  readonly path: string;
  readonly text: string;
  /** The same length as `text`: comments, string contents and regular expressions are blanks. */
  readonly code: string;
  readonly comments: readonly Comment[];
  readonly imports: readonly Import[];
}

export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let i = text.indexOf("\n"); i !== -1 && i < offset; i = text.indexOf("\n", i + 1)) line++;
  return line;
}

/** Every source file under `folder`, in a stable order. */
export function readTree(root: string, folder: string): SourceFile[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.[cm]?[jt]sx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((absolute) => {
      const path = absolute
        .slice(join(root, "x").length - 1)
        .split("\\")
        .join("/");
      return parse(path, readFileSync(absolute, "utf8"));
    });
}

export function parse(path: string, text: string): SourceFile {
  const { code, comments } = blank(text);
  return { path, text, code, comments, imports: importsOf(path, text, code) };
}

const BEFORE_REGEX = new Set(
  "return typeof case in of new delete void throw await yield instanceof else do extends default".split(" "),
);

/** Whether a slash after this code starts a regular expression; otherwise it divides. */
function regexMayStart(before: string): boolean {
  const last = before.trimEnd();
  if (last === "") return true;
  const word = /[\w$]+$/.exec(last)?.[0];
  if (word) return BEFORE_REGEX.has(word);
  return !/[)\]"'`]$/.test(last);
}

/** The end of a regular expression that starts at `start`; a slash inside a character class does not end it. */
function regexEnd(text: string, start: number): number {
  let inClass = false;
  for (let i = start + 1; i < text.length && text[i] !== "\n"; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === "[") inClass = true;
    else if (text[i] === "]") inClass = false;
    else if (text[i] === "/" && !inClass) return i + 1;
  }
  return start + 1;
}

function stringEnd(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === text[start] || text[i] === "\n") return i + 1;
  }
  return text.length;
}

/** The end of a stretch of template text: after the closing backtick, or on the brace of `${`. */
function templateEnd(text: string, start: number): { end: number; hole: boolean } {
  for (let i = start; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === "`") return { end: i + 1, hole: false };
    else if (text[i] === "$" && text[i + 1] === "{") return { end: i + 1, hole: true };
  }
  return { end: text.length, hole: false };
}

const blanks = (text: string): string => text.replace(/[^\n]/g, " ");
/** Quotes stay, so that an import's specifier can be found again in the text. */
const emptied = (literal: string): string =>
  literal.length < 2 ? literal : `${literal[0]}${blanks(literal.slice(1, -1))}${literal.at(-1)}`;

function blank(text: string): { code: string; comments: Comment[] } {
  const comments: Comment[] = [];
  /** Depth of braces at which each open template hole ends. */
  const holes: number[] = [];
  let depth = 0;
  let code = "";

  const template = (start: number): number => {
    const { end, hole } = templateEnd(text, start);
    code += blanks(text.slice(start, end));
    if (hole) holes.push(depth);
    return end;
  };

  for (let i = 0; i < text.length; ) {
    const c = text[i] as string;
    const two = text.slice(i, i + 2);
    if (two === "//" || two === "/*" || (i === 0 && two === "#!")) {
      const close = two === "/*" ? text.indexOf("*/", i + 2) : text.indexOf("\n", i);
      const end = close === -1 ? text.length : two === "/*" ? close + 2 : close;
      comments.push({ text: text.slice(i, end), line: lineAt(text, i) });
      code += blanks(text.slice(i, end));
      i = end;
    } else if (c === '"' || c === "'") {
      const end = stringEnd(text, i);
      code += emptied(text.slice(i, end));
      i = end;
    } else if (c === "`") {
      code += c;
      i = template(i + 1);
    } else if (c === "}" && holes.at(-1) === depth - 1) {
      holes.pop();
      depth--;
      code += c;
      i = template(i + 1);
    } else if (c === "/" && regexMayStart(code.slice(-40))) {
      const end = regexEnd(text, i);
      code += blanks(text.slice(i, end));
      i = end;
    } else {
      if (c === "{") depth++;
      if (c === "}") depth--;
      code += c;
      i++;
    }
  }
  return { code, comments };
}

const STATIC_IMPORT = /(?<![\w$.])(import|export)\b(\s+type\b)?[^;"'`()=]*?\bfrom\s*["']/g;
const BARE_IMPORT = /(?<![\w$.])import\s*["']/g;
const DYNAMIC_IMPORT = /(typeof\s+)?(?<![\w$.])import\s*\(\s*["']/g;

function importsOf(path: string, text: string, code: string): Import[] {
  const found: Import[] = [];
  const add = (match: RegExpMatchArray, kind: Import["kind"], form: Import["form"]): void => {
    const open = (match.index as number) + match[0].length - 1;
    const spec = text.slice(open + 1, text.indexOf(text[open] as string, open + 1));
    const target = spec.startsWith(".") ? posix.join(posix.dirname(path), spec).replace(/\.js$/, ".ts") : null;
    found.push({ spec, line: lineAt(text, match.index as number), kind, form, target });
  };
  for (const match of code.matchAll(STATIC_IMPORT)) {
    add(match, match[2] ? "type" : "value", match[1] === "export" ? "re-export" : "import");
  }
  for (const match of code.matchAll(BARE_IMPORT)) add(match, "value", "import");
  for (const match of code.matchAll(DYNAMIC_IMPORT)) add(match, match[1] ? "type" : "value", "dynamic");
  return found.sort((a, b) => a.line - b.line);
}
