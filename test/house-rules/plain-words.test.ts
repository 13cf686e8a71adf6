/**
 * Everything that people read is in plain words; and each banned word is found where there is one.
 */
import { join } from "node:path";
import { expect, it } from "vitest";
import { learnedWords, readText, WORDS, wordedFiles } from "./plain-words.ts";

const repository = join(import.meta.dirname, "..", "..");

it("no source, test, document or text for users has a word that must be learned", () => {
  const files = wordedFiles(repository);
  expect(files).toEqual(
    expect.arrayContaining(["README.md", "docs/glossary.md", "src/create.ts", "test/house-rules/rules.test.ts"]),
  );
  expect(files.length).toBeGreaterThan(800);
  expect(files.flatMap((path) => learnedWords(path, readText(repository, path)))).toEqual([]);
});

it("and one that has is found, in a sentence and in a name", () => {
  const path = "test/house-rules/broken-tree/words.md";
  const lines = learnedWords(path, readText(repository, path)).map((found) => Number(/:(\d+) /.exec(found)?.[1]));
  expect(lines).toEqual([...WORDS.keys()].map((at) => at + 3));
  expect(learnedWords("x.ts", "const crowdSize = face_of(x);")).toHaveLength(2);
  expect(learnedWords("x.ts", "const surface = interfaces.filter(isTalent); // hands it to the store")).toEqual([]);
});
