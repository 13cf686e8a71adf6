/**
 * The order of test files: the longest first, so that at the end no worker waits for another's last long file. What a file takes is
 * in durations.json, which `npm test -- --measure` writes; one that is not in it is short.
 */
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const REPO = fileURLToPath(new URL("../..", import.meta.url));
const SECONDS = JSON.parse(readFileSync(new URL("durations.json", import.meta.url), "utf8")) as Record<string, number>;

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const seconds = ({ moduleId }: TestSpecification) => SECONDS[relative(REPO, moduleId)] ?? 0;
    return [...files].sort((a, b) => seconds(b) - seconds(a) || a.moduleId.localeCompare(b.moduleId));
  }
}
