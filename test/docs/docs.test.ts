/**
 * The documents name what exists: files, functions in them, tests by their titles, commands, environment variables, headings. A
 * pointer that leads nowhere is worse than none.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, it } from "vitest";
import { printedDashboards } from "../../deploy/grafana/all.ts";
import { runProgram } from "../../src/cli/program.ts";
import {
  anchors,
  commands,
  links,
  type Named,
  namedPaths,
  namedTests,
  namesInFiles,
  npmScripts,
  shortPaths,
  variables,
} from "./references.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

function filesUnder(folder: string, ending: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === "node_modules" ? [] : filesUnder(path, ending);
    return entry.name.endsWith(ending) ? [path] : [];
  });
}

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

const DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", ...filesUnder("docs", ".md")];
const SOURCE = filesUnder("src", ".ts").map(read).join("\n");
const FILES = ["src", "test", "bench", "demo", "examples", "deploy"].flatMap((folder) => [
  ...filesUnder(folder, ".ts"),
  ...filesUnder(folder, ".mjs"),
]);
const SCRIPTS = Object.keys((JSON.parse(read("package.json")) as { scripts: Record<string, string> }).scripts);

/** The whole word, `#` of a private member included. */
function isIn({ path, name }: Named): boolean {
  return existsSync(join(ROOT, path)) && new RegExp(`(?<![\\w#])${name}(?!\\w)`).test(read(path));
}

/** As it is written in the source: a quote in it is escaped there. */
function isTitle({ path, name }: Named): boolean {
  return existsSync(join(ROOT, path)) && [`"${name}"`, `\`${name}\``].some((title) => read(path).includes(title));
}

/** Of the program or of a script. A secret may come from a file: the variable that names it is the secret's own and `_FILE`. */
function isVariable(name: string): boolean {
  const source = SOURCE + read("package.json");
  return [name, name.replace(/_FILE$/, "")].some((known) => new RegExp(`\\b${known}\\b`).test(source));
}

function leadsNowhere(document: string, { path, anchor }: { readonly path: string; readonly anchor: string | null }): boolean {
  const target = path === "" ? document : normalize(join(dirname(document), path));
  if (!existsSync(join(ROOT, target))) return true;
  return anchor !== null && !anchors(read(target)).includes(anchor);
}

/** What the help of a command says there is below it; null: there is no such command. */
const helps = new Map<string, Promise<string | null>>();
function helpOf(words: readonly string[]): Promise<string | null> {
  const key = words.join(" ");
  const asked = async (): Promise<string | null> => {
    let text = "";
    const io = { out: (part: string) => (text += part), err: () => undefined, env: {}, cwd: ROOT };
    const exit = await runProgram(io as never, [...words, "--help"]);
    return exit === 0 && text.includes(`Usage: makegood ${key}`.trimEnd()) ? text : null;
  };
  const help = helps.get(key) ?? asked();
  helps.set(key, help);
  return help;
}

/** The first word must be a command; the second, too, where the first one has commands below it. */
async function isCommand(words: readonly string[]): Promise<boolean> {
  const [first = "", second] = words;
  if (first.startsWith("-")) return true;
  const help = await helpOf([first]);
  if (help === null) return false;
  const below = /^Commands:$/m.test(help);
  return !below || second === undefined || !/^[a-z][a-z-]*$/.test(second) || (await helpOf([first, second])) !== null;
}

describe("documents", () => {
  for (const document of DOCUMENTS) {
    const text = read(document);
    // What was true of a release stays in its history.
    const history = document === "CHANGELOG.md";

    it(`${document} names only what exists`, () => {
      expect(namedPaths(text).filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
      expect(shortPaths(text).filter((end) => !FILES.some((path) => path === end || path.endsWith(`/${end}`)))).toEqual([]);
      if (!history) expect(namesInFiles(text).filter((named) => !isIn(named))).toEqual([]);
      expect(namedTests(text).filter((named) => !isTitle(named))).toEqual([]);
    });

    it(`${document} links only to what exists`, () => {
      expect(links(text).filter((link) => leadsNowhere(document, link))).toEqual([]);
    });

    it(`${document} gives scripts and settings that exist`, () => {
      expect(npmScripts(text).filter((script) => !SCRIPTS.includes(script))).toEqual([]);
      expect(variables(text).filter((name) => !isVariable(name))).toEqual([]);
    });
  }

  it("commands that the documents give exist", { timeout: 60_000 }, async () => {
    const unknown: string[] = [];
    for (const document of [...DOCUMENTS, ...Object.keys(printedDashboards)]) {
      for (const words of commands(read(document))) {
        if (!(await isCommand(words))) unknown.push(`${document}: ${words.join(" ")}`);
      }
    }
    expect(unknown).toEqual([]);
    expect(await Promise.all([["messages", "nothing"], ["nothing"]].map(isCommand))).toEqual([false, false]);
  });

  it("each invariant says where it is kept and which test checks it", () => {
    const sections = read("docs/invariants.md")
      .split(/^## /m)
      .filter((section) => /^I\d+: /.test(section));
    expect(sections.map((section) => section.split(":")[0])).toEqual(Array.from({ length: 12 }, (_, i) => `I${i + 1}`));
    for (const section of sections) {
      const [kept = "", checked = ""] = section.split("Checked by");
      const title = section.split("\n")[0];
      expect([title, namesInFiles(kept).length > 0]).toEqual([title, true]);
      expect([title, namedTests(checked).length > 0]).toEqual([title, true]);
    }
  });

  it("what is not there is found", () => {
    const path = "test/docs/references.ts";
    expect(namesInFiles(`\`isIn\` in \`${path}\`; \`${path}\` \`links\`, \`nowhere\``)).toEqual([
      { path, name: "isIn" },
      { path, name: "links" },
      { path, name: "nowhere" },
    ]);
    expect([isIn({ path, name: "links" }), isIn({ path, name: "nowhere" }), isIn({ path, name: "link" })]).toEqual([
      true,
      false,
      false,
    ]);
    expect(namedTests(`\`${path}\` "a title"`).map(isTitle)).toEqual([false]);
    expect(anchors("# A b\n\n## How do I add a `sink`?")).toEqual(["a-b", "how-do-i-add-a-sink"]);
    expect(leadsNowhere("README.md", { path: "docs/walk.md", anchor: "no-such-heading" })).toBe(true);
    expect(["MAKEGOOD_PORT", "MAKEGOOD_TOKENS_FILE", "MAKEGOOD_NOTHING"].map(isVariable)).toEqual([true, true, false]);
  });
});
