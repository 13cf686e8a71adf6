/**
 * Files that are printed from code: each is what its source says now. `npm run docs:metrics` and `npm run deploy:print` write them.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { PRINTED } from "../../deploy/printed.ts";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const WRITES = process.env.MAKEGOOD_WRITE === "1";

describe("printed files", () => {
  it.each(Object.entries(PRINTED))("%s is what its source says (npm run deploy:print)", (path, print) => {
    const whole = join(ROOT, path);
    if (WRITES) {
      mkdirSync(dirname(whole), { recursive: true });
      writeFileSync(whole, print());
    }
    expect(readFileSync(whole, "utf8")).toBe(print());
  });

  it("nothing else lies where only printed files do", () => {
    for (const folder of new Set(Object.keys(PRINTED).map(dirname))) {
      if (!["docs/runbooks/alerts", "deploy/prometheus", "deploy/grafana"].includes(folder)) continue;
      const there = readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}`);
      expect(there.filter((path) => !path.endsWith(".ts") && !(path in PRINTED))).toEqual([]);
    }
  });
});
