/**
 * The tables of docs/walk.md as data: what each step names, and what the document says runs beside a walk.
 */
import { readFileSync } from "node:fs";

export interface Row {
  readonly step: string;
  /** File → functions that the row names in it. */
  readonly named: ReadonlyMap<string, readonly string[]>;
}

export interface WalkTable {
  readonly rows: readonly Row[];
  /** Files and folders that run in some of its steps without being the walk. */
  readonly beside: readonly string[];
  /** Those that may run in any step or in none. */
  readonly byTheClock: readonly string[];
}

const DOCUMENT = readFileSync(new URL("../../docs/walk.md", import.meta.url), "utf8");

/** The text below a heading, as far as the next one of any level. */
export function section(heading: string, text = DOCUMENT): string {
  const [, below] = text.split(new RegExp(`^#+ ${heading}\\n`, "m"));
  if (below === undefined) throw new Error(`docs/walk.md has no heading "${heading}"`);
  return below.split(/^#+ /m)[0] as string;
}

const isPath = (quoted: string): boolean => quoted.startsWith("src/");

/** A path stands before the functions that are called in it. */
function namedIn(cell: string): Map<string, string[]> {
  const named = new Map<string, string[]>();
  let path = "";
  for (const [, quoted = ""] of cell.matchAll(/`([^`]+)`/g)) {
    if (isPath(quoted)) {
      path = quoted;
      named.set(path, named.get(path) ?? []);
    } else named.get(path)?.push(quoted.replace("()", ""));
  }
  return named;
}

/** The table below one heading, and the paths in back ticks below another: what runs beside it. */
export function walkTable(heading: string, beside: string, text = DOCUMENT): WalkTable {
  const lines = section(heading, text)
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .slice(2);
  const rows = lines.map((line) => {
    const [, step = "", where = ""] = line.split("|").map((cell) => cell.trim());
    return { step, named: namedIn(where) };
  });
  const [called = "", clocked = ""] = section(beside, text).split("By the clock");
  return { rows, beside: [...namedIn(called).keys()], byTheClock: [...namedIn(clocked).keys()] };
}
