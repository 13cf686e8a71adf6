/**
 * Writes what each file of a run took into durations.json, by which the longest begin first: `npm test -- --measure`. Files that the run
 * did not have keep their figure, those that are gone lose it, and short ones have none.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { REPO } from "./run-program.mjs";

const PATH = join(REPO, "test/support/durations.json");
const SECONDS_MIN = 3;

/** Where several stages have a file, `files` has it several times: the longest counts. */
export function writeDurations(files) {
  const seconds = new Map(Object.entries(JSON.parse(readFileSync(PATH, "utf8"))));
  for (const { file } of files) seconds.delete(file);
  for (const one of files) seconds.set(one.file, Math.max(seconds.get(one.file) ?? 0, Math.round(one.seconds)));
  const kept = [...seconds].filter(([file, s]) => s >= SECONDS_MIN && existsSync(join(REPO, file)));
  kept.sort(([a, s], [b, t]) => t - s || a.localeCompare(b));
  writeFileSync(PATH, `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`);
}
