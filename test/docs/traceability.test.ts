/**
 * Every number that was asked for has one line in `docs/traceability.md`, its state is one of a few, and a line that says built names a
 * test by file and title that exists. How a test is named: `path`, "its title"; `path`, by its number; `path`, by DF-3; conformance
 * `settle`; fault 7.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { titlesOf } from "./test-titles.ts";
import { allNumbers, faultsOf, type House, rowsOf } from "./trace-rows.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

const known = new Map<string, readonly string[]>();
function titles(path: string): readonly string[] {
  const found = known.get(path) ?? (existsSync(join(ROOT, path)) ? titlesOf(path, read(path)) : []);
  known.set(path, found);
  return found;
}

const HOUSE: House = {
  titles,
  faults: readdirSync(join(ROOT, "test/faults")).flatMap((name) =>
    name.endsWith(".test.ts") ? titles(`test/faults/${name}`) : [],
  ),
  decisions: readdirSync(join(ROOT, "docs/decisions")).map((name) => name.slice(0, 4)),
};

describe("traceability", () => {
  const rows = rowsOf(read("docs/traceability.md"));

  it("has one honest line for each number", () => {
    expect(faultsOf(rows, HOUSE)).toEqual([]);
    expect(allNumbers()).toHaveLength(77 + 36 + 29 + 61 + 2 + 43 + 35 + 28 + 21 + 51 + 12 + 51);
  });

  it("FIN-62: what was measured last meets what was asked for", () => {
    const measured = read("bench/RESULTS.md")
      .split("\n")
      .map((line) => line.split("|").map((cell) => cell.trim()))
      .filter(([, what = "", , asked = ""]) => what.startsWith("settlement: ") && asked.startsWith("≤"))
      .map(([, what = "", where, asked = "", got = ""]) => ({
        what,
        where,
        within: Number.parseFloat(got) <= Number(asked.slice(1)),
      }));
    for (const what of ["put, p99, ms", "ready (claim of 50), p99, ms", "what finalize() adds, p99, ms"]) {
      const of = measured.filter((each) => each.what === `settlement: ${what}`);
      expect(of.map(({ where }) => where)).toEqual(["on Redis, everysec", "on Redis, always", "on PostgreSQL"]);
    }
    expect(measured.filter(({ within }) => !within)).toEqual([]);
  });
});

describe("a broken line is found", () => {
  const house: House = {
    titles: (path) => (path === "test/a.test.ts" || path.endsWith("/settle.ts") ? ["FIN-10, DF-3: it holds", "it is so"] : []),
    faults: ["fault 7: a kill", "faults 10 and 11: a cut"],
    decisions: ["0001"],
  };
  /** Of the row alone: that all others are missing is another matter. */
  const judged = (state: string, says: string, id = "FIN-10"): string[] =>
    faultsOf(rowsOf(`| ${id} | ${state} | ${says} |\n| DF-3 | built | \`test/a.test.ts\`, by its number |`), house)
      .filter((fault) => fault.startsWith(`${id}: `) && !fault.endsWith(" rows"))
      .map((fault) => fault.slice(id.length + 2));

  it.each<[string, string]>([
    ["built", '`test/a.test.ts`, "it is so"'],
    ["built", "words, `src/x.ts`; `test/a.test.ts`, by its number. More words"],
    ["built", "`test/a.test.ts` (twice), by DF-3"],
    ["built", 'conformance `settle`, "it is so"'],
    ["built", "conformance `settle`; fault 7"],
    ["built", "faults 7, 11"],
    ["built in part", "fault 7. missing: the other half"],
    ["superseded by DF-3, decision 0001, I2", "what it says"],
    ["not taken", "because we have no use for it"],
    ["next: operations", "alerts"],
  ])("but a good one is not: %s, %s", (state, says) => {
    expect(judged(state, says)).toEqual([]);
  });

  it.each<[string, string, string]>([
    ["built", "`src/x.ts`", "names no test by its title"],
    ["built", "`test/a.test.ts`; fault 7", "test/a.test.ts is named without a title"],
    ["built", '`test/a.test.ts`, "it is"; fault 7', 'test/a.test.ts has no title "it is"'],
    ["built", '`test/b.test.ts`, "it is so"; fault 7', 'test/b.test.ts has no title "it is so"'],
    ["built", "`test/a.test.ts`, by FIN-1; fault 7", "test/a.test.ts has no title with FIN-1"],
    ["built", "`test/b.test.ts`, `test/a.test.ts`, by its number", "test/b.test.ts has no title with FIN-10"],
    ["built", "fault 7, by its number", "by a number, but of no test"],
    ["built", "conformance `unsettle`; fault 7", "src/testing/store-conformance/unsettle.ts has no title at all"],
    ["built", "faults 7 and 8", "test/faults has no title of fault 8"],
    ["built", "fault 7; the rest: next, operations", "built, and says that something comes next"],
    ["built in part", "fault 7", "built in part does not say what is missing"],
    ["built in part", "missing: the other half", "names no test by its title"],
    ["superseded by DF-4", "x", "superseded by DF-4, which is not built"],
    ["superseded by FIN-10", "x", "superseded by FIN-10, which is not built"],
    ["superseded by DF-3…4", "x", "superseded by DF-4, which is not built"],
    ["superseded by decision 0002", "x", "no decision 0002"],
    ["superseded by I13", "x", "no invariant I13"],
    ["not taken", "no", "not taken does not say why"],
    ["next: some day", "x", "next names no part: some day"],
    ["nearly built", "fault 7", "no such state: nearly built"],
  ])("%s, %s", (state, says, fault) => {
    expect(judged(state, says)).toEqual([fault]);
  });

  it("so is a number that has no line, two, or does not exist", () => {
    const faults = faultsOf(rowsOf("| DF-3 | built | fault 7 |\n| DF-3 | built | fault 7 |\n| DF-36 | built | fault 7 |"), house);
    expect(faults).toEqual(expect.arrayContaining(["DF-1: 0 rows", "DF-3: 2 rows", "DF-36: no such number", "REC-19a: 0 rows"]));
  });

  it("and a string that is no title is none", () => {
    const text = [
      'describe("a", () => {',
      '  it.each<[string]>([["no"]])("b %s", () => expect("no").toBe("no"));',
      "  it.skipIf(x)(`c $" + "{n}`, f);",
      '  // it("no")',
      '  page.it("no"); submit("no");',
      "});",
      "const cases = {",
      '  "d e": async (scene) => {},',
      '  "no": 1,',
      "};",
    ];
    expect(titlesOf("src/testing/x.ts", text.join("\n"))).toEqual(["a", "b %s", "c $" + "{n}", "d e"]);
    expect(titlesOf("test/x.test.ts", text.join("\n"))).toEqual(["a", "b %s", "c $" + "{n}"]);
  });
});
