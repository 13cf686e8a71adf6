import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BANS } from "./content-rules.ts";
import { EXCEPTIONS } from "./exceptions.ts";
import { functionSpans } from "./functions.ts";
import { DOORS, MAY_IMPORT, roomOf, SINK_KINDS, STORE_ENGINES } from "./rooms.ts";
import { checkTree, excuses, RULES, show, type Violation } from "./rules.ts";
import { parse, readTree } from "./source.ts";

const repository = join(import.meta.dirname, "..", "..");
const sorted = (lines: readonly string[]): string[] => [...lines].sort((a, b) => a.localeCompare(b));
const errorsOf = (violations: readonly Violation[]): Violation[] => violations.filter(({ level }) => level === "error");

describe("the house", () => {
  const violations = checkTree(repository);

  it.each(Object.keys(RULES))("keeps %s", (rule) => {
    expect(
      errorsOf(violations)
        .filter((violation) => violation.rule === rule)
        .map(show),
    ).toEqual([]);
  });

  it("is read whole: a rule that sees no file finds nothing", () => {
    const files = readdirSync(join(repository, "src"), { recursive: true, encoding: "utf8" }).filter((name) =>
      name.endsWith(".ts"),
    );
    expect(files.length).toBeGreaterThan(100);
    expect(readTree(repository, "src").map(({ path }) => path)).toEqual(
      expect.arrayContaining(["src/store/store.ts", ...files.map((name) => join("src", name))]),
    );
  });

  it("has every room, sink kind, store engine and door that its table names", () => {
    const paths = readTree(repository, "src").map(({ path }) => path);
    const rooms = new Set(paths.map(roomOf));
    const single = Object.keys(MAY_IMPORT).filter((room) => !room.endsWith(":*"));
    const named = [...single, ...SINK_KINDS.map((kind) => `sink:${kind}`), ...STORE_ENGINES.map((engine) => `store:${engine}`)];
    expect(named.filter((room) => !rooms.has(room))).toEqual([]);
    expect(DOORS.filter((door) => !paths.includes(door))).toEqual([]);
  });

  /** What a file loads when it is imported, over as many files as there are. */
  function loadedBy(start: string): string[] {
    const byPath = new Map(readTree(repository, "src").map((file) => [file.path, file]));
    const loaded = new Set([start]);
    for (const path of loaded) {
      for (const { target, spec, kind, form } of byPath.get(path)?.imports ?? []) {
        if (kind === "value" && form !== "dynamic") loaded.add(target ?? spec);
      }
    }
    return [...loaded];
  }

  it("loads no sink to read a configuration, which every command does", () => {
    const loaded = loadedBy("src/cli/program.ts");
    expect(loaded).toContain("src/server/config/config.ts");
    expect(loaded.filter((path) => path === "undici" || roomOf(path)?.startsWith("sink:"))).toEqual([]);
  });

  it("opens the receivers' doors onto small rooms: no store, no driver, no server", () => {
    const strangers = (door: string, known: RegExp) => loadedBy(door).filter((path) => !known.test(path));
    expect(strangers("src/webhook/index.ts", /^(src\/(webhook|message|platform)\/|node:crypto$)/)).toEqual([]);
    expect(strangers("src/inbox/index.ts", /^(src\/(inbox|message|store\/shared)\/|node:crypto$)/)).toEqual([]);
    expect(strangers("src/sink/webhook.ts", /^src\/webhook\//), "it would see them").toContain("undici");
  });

  it("lists the files to look at again, and only for their size", () => {
    const warnings = violations.filter(({ level }) => level === "warning");
    for (const violation of warnings) process.stdout.write(`look: ${show(violation)}\n`);
    expect(warnings.filter(({ rule }) => rule !== "file-size").map(show)).toEqual([]);
  });

  it("has a reason for every exception, and something that it excuses", () => {
    const all = checkTree(repository, []);
    for (const exception of EXCEPTIONS) {
      const { rule, path, reason } = exception;
      expect(reason.split(" ").length).toBeGreaterThan(2);
      // Some name several calls for one place: that one of them is made there is enough.
      const ofPlace = EXCEPTIONS.filter((other) => other.rule === rule && other.path === path && other.reason === reason);
      const excused = all.filter((violation) => ofPlace.some((other) => excuses(other, violation)));
      expect({ rule, path, excuses: excused.length > 0 }).toEqual({ rule, path, excuses: true });
    }
  });
});

/** rule → `file:line` in the broken tree: what is here must be found, and nothing else may be. */
const BROKEN: Readonly<Record<string, readonly string[]>> = {
  "unknown-room": ["src/store/couch/couch-store.ts:1", "src/things/thing.ts:1"],
  "import-direction": [
    "src/client/client.ts:2",
    "src/client/client.ts:3",
    "src/client/client.ts:5",
    "src/index.ts:2",
    "src/message/decide.ts:2",
    "src/server/routes.ts:2",
    "src/sink/http.ts:2",
    "src/sink/webhook.ts:2",
    "src/store/memory/memory-store.ts:2",
    "src/topic/topic.ts:3",
  ],
  "adapter-imports": ["src/adapters/knex.ts:2", "src/adapters/knex.ts:3"],
  "import-cycle": ["src/message/cycle-a.ts:1"],
  "decided-once": ["src/maintenance/second-judge.ts:2"],
  barrel: ["src/message/index.ts:1", "src/message/index.ts:2"],
  "door-exports-only": ["src/index.ts:5"],
  "file-size": ["src/observe/at-the-wall.ts:300", "src/observe/too-long.ts:400"],
  "function-size": ["src/observe/long-functions.ts:2", "src/observe/long-functions.ts:74", "src/observe/long-functions.ts:147"],
  "header-sentence": ["src/message/no-header.ts:1", "src/message/outcome.ts:1"],
  "folder-name": ["src/worker/utils/pad.ts:1"],
  "seam-size": ["src/store/store.ts:2"],
  "sink-kinds": ["src/topic/topic.ts:5", "src/topic/topic.ts:5", "src/topic/topic.ts:7", "src/topic/topic.ts:8"],
  "parsed-once": [2, 3, 4].map((line) => `src/server/handlers/reads.ts:${line}`),
  "default-export": ["src/worker/main.ts:3", "src/worker/main.ts:4"],
  "banned-call": [
    "src/cli/main.ts:4",
    ...[2, 2, 3, 4, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15, 15, 16, 17, 18].map((line) => `src/worker/calls.ts:${line}`),
    "src/server/config/config.ts:2",
    "src/server/config/config.ts:3",
  ],
  "banned-word": [2, 3, 4, 4, 7, 7].map((line) => `src/worker/words.ts:${line}`),
  "test-code": ["src/worker/attempt.spec.ts:1", "src/worker/attempt.spec.ts:2", "src/worker/dispatcher.ts:2"],
  "suppression-reason": ["src/worker/suppressed.ts:2", "src/worker/suppressed.ts:6", "src/worker/suppressed.ts:10"],
};

describe("the broken tree", () => {
  const violations = checkTree(join(import.meta.dirname, "broken-tree"));

  it("breaks every rule there is", () => {
    expect(sorted(Object.keys(BROKEN))).toEqual(sorted(Object.keys(RULES)));
  });

  it.each(Object.entries(BROKEN))("breaks %s exactly where expected", (rule, expected) => {
    const found = violations.filter((violation) => violation.rule === rule).map(({ file, line }) => `${file}:${line}`);
    expect(expected.length).toBeGreaterThan(0);
    expect(sorted(found)).toEqual(sorted(expected));
  });

  it("contains every banned call", () => {
    const found = new Set(violations.map(({ what }) => what));
    expect(BANS.map(({ what }) => what).filter((what) => !found.has(what))).toEqual([]);
  });

  it("does not blame a file that only looks guilty", () => {
    expect(violations.filter(({ file }) => file === "src/platform/clean.ts").map(show)).toEqual([]);
  });

  it("warns at the wall and fails past it", () => {
    const sizes = violations.filter(({ rule }) => rule === "file-size");
    expect(sizes.map(({ file, level }) => [file, level])).toEqual([
      ["src/observe/at-the-wall.ts", "warning"],
      ["src/observe/too-long.ts", "error"],
    ]);
  });
});

describe("the scanner", () => {
  const source = (text: string) => parse("src/worker/x.ts", text);

  it("keeps offsets and lines while it blanks", () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: this is source text for the scanner
    const text = 'const a = "x\\"y"; // "z\nconst b = `p ${a + `q ${1}`} r`;\nconst c = /["`/]/.test(a) ? a.length / 2 : 1;\n';
    const { code } = source(text);
    expect(code).toHaveLength(text.length);
    expect(code.split("\n")).toHaveLength(text.split("\n").length);
    expect(code).not.toMatch(/[xyzpqr]\b(?!\.)/);
    expect(code).toContain("a.length / 2 : 1");
  });

  it("tells types from values and finds every form of import", () => {
    const { imports } = source(
      [
        'import type { A } from "./a.ts";',
        "import {\n  b,\n  type B,\n} from '../b.js';",
        'import "./c.ts";',
        'export * from "./d.ts";',
        'export type { E } from "./e.ts";',
        'const f = await import("./f.ts");',
        'type G = typeof import("./g.ts");',
        "const text = 'import h from \"./h.ts\"';",
        'import { Pool } from "pg";',
      ].join("\n"),
    );
    expect(imports.map(({ target, kind, form }) => [target, kind, form])).toEqual([
      ["src/worker/a.ts", "type", "import"],
      ["src/b.ts", "value", "import"],
      ["src/worker/c.ts", "value", "import"],
      ["src/worker/d.ts", "value", "re-export"],
      ["src/worker/e.ts", "type", "re-export"],
      ["src/worker/f.ts", "value", "dynamic"],
      ["src/worker/g.ts", "type", "dynamic"],
      [null, "value", "import"],
    ]);
  });

  it("measures functions and not the blocks around them", () => {
    const text = [
      "class A {",
      "  #b<T>(c: T): Map<string, () => T> {",
      "    if (c) {",
      "      return new Map();",
      "    }",
      "    for await (const d of e()) {",
      "      f(d, async ({ g }) => {",
      "        h(g);",
      "      });",
      "    }",
      "  }",
      "}",
      "const i = { j: 1,",
      "  k: 2,",
      "};",
    ].join("\n");
    expect(functionSpans(source(text).code)).toEqual([
      { line: 2, lines: 8 },
      { line: 7, lines: 3 },
    ]);
  });
});
