/**
 * The house rules: reads the source under `src` and says where it breaks them. Each rule is one function over the whole
 * tree; rules.test.ts proves on a broken tree that every one of them can fail.
 */
import { bannedCalls, bannedWords, defaultExports, parsedOnce, sinkKinds, suppressions, testCode } from "./content-rules.ts";
import { EXCEPTIONS, type Exception } from "./exceptions.ts";
import { functionSpans } from "./functions.ts";
import { adapterImports, barrels, decidedOnce, doors, importCycles, importDirection, unknownRoom } from "./import-rules.ts";
import { readTree, type SourceFile } from "./source.ts";

export interface Violation {
  readonly rule: string;
  readonly file: string;
  readonly line: number;
  readonly level: "error" | "warning";
  /** What is wrong and what to do instead. */
  readonly text: string;
  /** What an exception may name. */
  readonly what?: string;
}

export type Found = Omit<Violation, "rule" | "level"> & { readonly level?: "warning" };
export type Rule = (tree: readonly SourceFile[]) => Found[];

const FILE_LINES_WALL = 400;
const FILE_LINES_LOOK = 300;
const FUNCTION_LINES_MAX = 70;
const HEADER_SENTENCES_MAX = 4;
const STORE_MEMBERS_MAX = 20;

const fileSize: Rule = (tree) =>
  tree.flatMap(({ path, text }) => {
    const lines = text.trimEnd().split("\n").length;
    if (lines <= FILE_LINES_LOOK) return [];
    if (lines > FILE_LINES_WALL) {
      return [
        { file: path, line: FILE_LINES_WALL, text: `${lines} lines; the wall is ${FILE_LINES_WALL}: split it by what it does` },
      ];
    }
    return [{ file: path, line: FILE_LINES_LOOK, level: "warning", text: `${lines} lines; look again whether it is one thing` }];
  });

const functionSize: Rule = (tree) =>
  tree.flatMap(({ path, code }) =>
    functionSpans(code)
      .filter((span) => span.lines > FUNCTION_LINES_MAX)
      .map((span) => ({ file: path, line: span.line, text: `a function of ${span.lines} lines; at most ${FUNCTION_LINES_MAX}` })),
  );

/** Ends of sentences; the dot of an abbreviation or of a file name is none. */
function sentences(text: string): number {
  const plain = text.replace(/\b(e\.g|i\.e|etc|vs)\./g, "");
  return plain.match(/[.!?](?=[\s)"'`]|$)/g)?.length ?? 0;
}

const headerSentence: Rule = (tree) =>
  tree.flatMap(({ path, text }) => {
    const header = /^(?:#!.*\n)?\/\*\*([\s\S]*?)\*\//.exec(text)?.[1];
    const count = header === undefined ? 0 : sentences(header.replace(/^\s*\* ?/gm, "").trim());
    if (count >= 1 && count <= HEADER_SENTENCES_MAX) return [];
    const found = header === undefined ? "does not" : `has ${count} sentences and does not`;
    return [{ file: path, line: 1, text: `${found} open with /** … */ of one to four sentences: what it is, what it promises` }];
  });

const JUNK_DRAWERS = new Set(["utils", "util", "helpers", "helper", "common", "types"]);

const folderName: Rule = (tree) =>
  tree.flatMap(({ path }) =>
    path
      .replace(/\.[cm]?[jt]sx?$/, "")
      .split("/")
      .filter((part) => JUNK_DRAWERS.has(part))
      .map((part) => ({ file: path, line: 1, text: `nothing is named ${part}: name it after what it does` })),
  );

/** Members of `interface Store`, one a line: what stands one brace deep. */
const seamSize: Rule = (tree) =>
  tree
    .filter(({ path }) => path === "src/store/store.ts")
    .flatMap(({ path, code }) => {
      const start = code.search(/\binterface\s+Store\b[^{]*\{/);
      if (start === -1) return [{ file: path, line: 1, text: "the Store seam is not where the house expects it" }];
      let depth = 0;
      let members = 0;
      for (let i = code.indexOf("{", start); i < code.length; i++) {
        const c = code[i] as string;
        if ("{([".includes(c)) depth++;
        if ("})]".includes(c)) depth--;
        if (depth === 0) break;
        if (c === ";" && depth === 1) members++;
      }
      if (members <= STORE_MEMBERS_MAX) return [];
      const line = code.slice(0, start).split("\n").length;
      return [{ file: path, line, text: `the Store seam has ${members} members; at most ${STORE_MEMBERS_MAX}` }];
    });

export const RULES: Readonly<Record<string, Rule>> = {
  "unknown-room": unknownRoom,
  "import-direction": importDirection,
  "adapter-imports": adapterImports,
  "import-cycle": importCycles,
  barrel: barrels,
  "decided-once": decidedOnce,
  "door-exports-only": doors,
  "file-size": fileSize,
  "function-size": functionSize,
  "header-sentence": headerSentence,
  "folder-name": folderName,
  "seam-size": seamSize,
  "sink-kinds": sinkKinds,
  "parsed-once": parsedOnce,
  "default-export": defaultExports,
  "banned-call": bannedCalls,
  "banned-word": bannedWords,
  "test-code": testCode,
  "suppression-reason": suppressions,
};

export function excuses(exception: Exception, violation: Violation): boolean {
  const { path } = exception;
  if (exception.rule !== violation.rule) return false;
  if (exception.what !== undefined && exception.what !== violation.what) return false;
  return path.endsWith("/") ? violation.file.startsWith(path) : violation.file === path;
}

/** Every violation under `root`/src, in the order of the rules; errors must be none, warnings are for reading. */
export function checkTree(root: string, exceptions = EXCEPTIONS): Violation[] {
  const tree = readTree(root, "src");
  return Object.entries(RULES)
    .flatMap(([rule, check]) => check(tree).map((found): Violation => ({ level: "error", ...found, rule })))
    .filter((violation) => !exceptions.some((exception) => excuses(exception, violation)));
}

export function show({ rule, file, line, text }: Violation): string {
  return `${file}:${line} ${rule}: ${text}`;
}
