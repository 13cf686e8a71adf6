/**
 * What is in test/unit needs no server, no other process and no file: neither the tests nor the helpers that they use reach for one.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse, readTree, type SourceFile } from "./source.ts";

const repository = join(import.meta.dirname, "..", "..");
const OUTSIDE =
  /^(node:(fs|fs\/promises|child_process|net|http|https|http2|tls|dgram)|pg|redis|ioredis|undici|@hono\/node-server)$/;
const ENGINES = /^src\/store\/(postgres|redis|journal)\//;

/** What leads outside, over as many helpers as there are. */
function waysOut(file: SourceFile, seen = new Set([file.path])): string[] {
  return file.imports
    .filter(({ kind }) => kind === "value")
    .flatMap(({ spec, target }) => {
      if (target === null ? OUTSIDE.test(spec) : ENGINES.test(target)) return [`${file.path} imports ${target ?? spec}`];
      if (target === null || !target.startsWith("test/") || seen.has(target)) return [];
      seen.add(target);
      return waysOut(parse(target, readFileSync(join(repository, target), "utf8")), seen);
    });
}

it("unit tests stay inside their process", () => {
  const tests = readTree(repository, "test/unit");
  expect(tests.length).toBeGreaterThan(40);
  expect(tests.flatMap((file) => waysOut(file))).toEqual([]);
});

it("and one that does not is found, also behind a helper", () => {
  const found = (text: string) => waysOut(parse("test/unit/delivery/x.test.ts", text));
  expect(found('import pg from "pg";')).toEqual(["test/unit/delivery/x.test.ts imports pg"]);
  expect(found('import { openStore } from "../../support/postgres.ts";')[0]).toMatch(/^test\/support\/postgres\.ts imports /);
  expect(found('import type pg from "pg";\nimport { decide } from "../../../src/message/decide.ts";')).toEqual([]);
});
