/**
 * C6: what a caller sees of the library's types: what is wrong does not compile, and the compiler says what is wrong and nothing else. One
 * run of the compiler over one file; each line of it is wrong in one way, or right.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { compileLines, misjudged, RIGHT, type Said, WRONG } from "./lines.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

let folder: string;
let said: Said;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "makegood-types-"));
  const how = {
    target: "ES2022",
    lib: ["ES2023", "ESNext.Disposable"],
    module: "NodeNext",
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    types: ["node"],
    typeRoots: [`${ROOT}node_modules/@types`],
  };
  said = await compileLines(join(ROOT, "node_modules/typescript/bin/tsc"), folder, `${ROOT}src/index.ts`, how);
}, 60_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

it.each(RIGHT)("C6: compiles: %s", (line) => {
  expect(said.right(line)).toEqual([]);
});

it.each(WRONG)("C6: does not compile, and the reason is named: %s", (line, says) => {
  expect(misjudged(said.wrong(line), says)).toBeNull();
});

it("C6: what comes before them compiles", () => {
  expect(said.before).toEqual([]);
});
