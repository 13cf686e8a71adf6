/**
 * What a document refers to: paths, names that stand next to a path, titles of tests, commands, environment variables and
 * links. Only what is written in one of these ways is read, so a document that wants to be checked keeps to them.
 */

/** A name in back ticks, and the file in which it must be found. */
export interface Named {
  readonly path: string;
  readonly name: string;
}

/** Paths in back ticks that begin in one of our folders; patterns and placeholders are not paths. */
export function namedPaths(text: string): string[] {
  const found = text.matchAll(/`((?:src|test|bench|docs|demo|examples)\/[\w./-]+)`/g);
  return [...new Set([...found].map((match) => (match[1] as string).replace(/[.,]$/, "")))];
}

/** Shorter ones, such as `statements/claim.ts`: the end of a path. A file of the reader's own is none of ours. */
export function shortPaths(text: string): string[] {
  const found = text.matchAll(/`((?:[\w-]+\/)*[\w.-]+\.(?:ts|mjs))`/g);
  return [...new Set([...found].map((match) => match[1] as string))].filter((path) => !path.startsWith("makegood.config."));
}

const PATH = /^(?:src|test|bench|demo)\/[\w./-]+\.(?:ts|mjs)$/;
const NAME = /^#?[A-Za-z_]\w*(?:\(\))?$/;
/** Between a path and the names that follow it: `path` `name`, `path`: `name`, `path` (`name`); more after a comma or `and`. */
const AFTER = /^(?: | \(|: |, function |, | and )$/;
/** Between a name and its path: `name` in `path`, `name` of `path`. */
const BEFORE = /^,? (?:in|of) $/;

/** Names that stand next to a path: after it, or before it with `in` or `of` between. */
export function namesInFiles(text: string): Named[] {
  // Split at back ticks: what stands between an odd one and the next is quoted.
  return withoutFences(text)
    .split("\n\n")
    .flatMap((paragraph) => paragraph.split(/\n(?=[|-])/))
    .flatMap((line) => namesInLine(line.replaceAll("\n", " ").split("`")));
}

function namesInLine(parts: readonly string[]): Named[] {
  const found: Named[] = [];
  let path: string | null = null;
  for (let i = 1; i < parts.length; i += 2) {
    const quoted = parts[i] as string;
    const next = parts[i + 2];
    if (PATH.test(quoted)) {
      path = quoted;
      continue;
    }
    if (!NAME.test(quoted)) {
      path = null;
      continue;
    }
    const name = quoted.replace("()", "");
    const following = BEFORE.test(parts[i + 1] ?? "") && next !== undefined && PATH.test(next) ? next : null;
    if (following !== null) found.push({ path: following, name });
    else if (path !== null && AFTER.test(parts[i - 1] as string)) found.push({ path, name });
    else path = null;
  }
  return found;
}

/** `path` "title": a test, or a case of a conformance suite. */
export function namedTests(text: string): Named[] {
  return [...text.matchAll(/`((?:src|test)\/[\w./-]+\.ts)` "([^"]+)"/g)].map((match) => ({
    path: match[1] as string,
    name: match[2] as string,
  }));
}

export function npmScripts(text: string): string[] {
  return [...new Set([...text.matchAll(/\bnpm run (?:--silent )?([a-z][\w:-]*)/g)].map((match) => match[1] as string))];
}

/** `makegood a b`, quoted or in a fenced block: the words that may be the names of commands. */
export function commands(text: string): string[][] {
  const quoted = [...withoutFences(text).matchAll(/`makegood ([^`]+)`/g)].map((match) => match[1] as string);
  const fenced = [...text.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap((match) =>
    [...(match[1] as string).matchAll(/(?<![\w./-])makegood ([a-z][^\n|;#)`]*)/g)].map((found) => found[1] as string),
  );
  return [...quoted, ...fenced].map((line) => line.split(/\s+/).filter((word) => word !== ""));
}

export function variables(text: string): string[] {
  return [...new Set(text.match(/\bMAKEGOOD_[A-Z_]*[A-Z]\b/g) ?? [])];
}

/** Links that stay here: where to, and the heading, if one is named. */
export function links(text: string): { readonly path: string; readonly anchor: string | null }[] {
  return [...withoutFences(text).matchAll(/\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)/g)].map((match) => ({
    path: match[1] as string,
    anchor: match[2] ?? null,
  }));
}

/** The anchors of a document, as forges make them from its headings. */
export function anchors(text: string): string[] {
  const headings = withoutFences(text).match(/^#{1,6} .+$/gm) ?? [];
  return headings.map((heading) =>
    heading
      .replace(/^#+ /, "")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replaceAll(" ", "-"),
  );
}

function withoutFences(text: string): string {
  return text.replace(/```[\s\S]*?```/g, "");
}
