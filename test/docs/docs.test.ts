/**
 * The documents name files, tests and links that exist: a pointer that leads nowhere is worse than none.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = new URL("../../", import.meta.url).pathname;

function markdown(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return markdown(path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

const DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", ...markdown("docs")];

/** Paths in back ticks that begin in one of our folders; patterns and placeholders are not paths. */
function namedPaths(text: string): string[] {
  const found = text.matchAll(/`((?:src|test|bench|docs|demo)\/[\w./-]+)`/g);
  return [...new Set([...found].map((match) => (match[1] as string).replace(/[.,]$/, "")))];
}

function links(text: string): string[] {
  return [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)\s#]+)/g)].map((match) => match[1] as string);
}

describe("documents", () => {
  for (const document of DOCUMENTS) {
    const text = readFileSync(join(ROOT, document), "utf8");

    it(`${document} names only what exists`, () => {
      expect(namedPaths(text).filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    });

    it(`${document} links only to what exists`, () => {
      expect(links(text).filter((link) => !existsSync(join(ROOT, dirname(document), link)))).toEqual([]);
    });
  }

  it("traceability names each requirement of the outbox and of recovery once", () => {
    const text = readFileSync(join(ROOT, "docs/traceability.md"), "utf8");
    const ids = [
      ...Array.from({ length: 29 }, (_, i) => `OBX-${i + 1}`),
      ...[20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 32, 33, 35, 41].map((n) => `CON-${n}`),
      ...Array.from({ length: 21 }, (_, i) => `DO-${i + 1}`),
      ...[1, 2, 5, 6, 9, 10, 12].map((n) => `DX-${n}`),
      ...Array.from({ length: 61 }, (_, i) => `REC-${i + 1}`),
      ...Array.from({ length: 51 }, (_, i) => `DR-${i + 1}`),
      ...Array.from({ length: 10 }, (_, i) => `EV-${i + 42}`),
    ];
    const lines = text.split("\n").map((line) => /^\|\s*((?:OBX|CON|DO|DX|REC|DR|EV)-\d+)\s*\|/.exec(line)?.[1]);
    for (const id of ids) expect([id, lines.filter((named) => named === id).length]).toEqual([id, 1]);
  });
});
