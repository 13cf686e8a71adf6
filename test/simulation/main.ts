/**
 * The command: reads what was asked for, plays it, and says what it found. 0: everything held; 1: something did not; 2: it was asked wrongly.
 */
import { parseArgs } from "node:util";
import { compareWith } from "./compare-with.ts";
import { shrink } from "./shrink.ts";
import { type History, type Run, simulate } from "./simulate.ts";

export { createPostgresStore } from "../../src/store/postgres/index.ts";
export { compare } from "./compare.ts";
export { shrink } from "./shrink.ts";
export { playHistory, simulate } from "./simulate.ts";

const SHRINK_MS = 60_000;
/** Some seconds each. */
const STEPS = 100_000;
const STEPS_COMPARED = 20_000;
const USAGE = "npm run simulate -- [--seed S] [--steps N] [--store postgres|redis] [--json]";

export async function main(args: string[]): Promise<number> {
  const asked = read(args);
  if (!asked) {
    console.error(USAGE);
    return 2;
  }
  const { seed, steps, store, json } = asked;
  if (store) return compareWith(store, seed, steps, json);
  const started = performance.now();
  const run = await simulate(seed, steps);
  const seconds = (performance.now() - started) / 1_000;
  const shortest = run.failed ? (await shrink(run.failed, SHRINK_MS)).history : null;
  if (json) console.log(JSON.stringify({ ...run, failed: run.failed && found(run.failed, shortest as History), seconds }));
  else say(run, shortest, seconds);
  return run.failed ? 1 : 0;
}

function read(args: string[]) {
  const options = {
    seed: { type: "string", default: "1" },
    steps: { type: "string" },
    store: { type: "string" },
    json: { type: "boolean", default: false },
  } as const;
  try {
    const { values } = parseArgs({ args, options });
    const [seed, steps] = [Number(values.seed), Number(values.steps ?? (values.store ? STEPS_COMPARED : STEPS))];
    const fits = Number.isSafeInteger(seed) && Number.isSafeInteger(steps) && steps > 0;
    const known = values.store === undefined || values.store === "postgres" || values.store === "redis";
    return fits && known ? { seed, steps, store: values.store as "postgres" | "redis" | undefined, json: values.json } : null;
  } catch {
    return null;
  }
}

const found = ({ seed, failure }: History, { actions, failure: shown, tail }: History) => ({
  seed,
  failure,
  shortest: { failure: shown, actions, tail },
});

function say(
  { seed, steps, histories, virtualMs, digest, failed, counts }: Run,
  shortest: History | null,
  seconds: number,
): void {
  const rate = Math.round(steps / seconds);
  console.log(
    `seed ${seed}: ${steps} steps in ${histories} histories, ${Math.round(virtualMs / 1_000)} s of virtual time, ${rate} steps a second`,
  );
  console.log(
    `${counts.accepted} accepted, ${counts.calls} calls of receivers; what was due waited at most ${counts.freshMs} ms while all was well`,
  );
  console.log(`history ${digest}`);
  if (!failed || !shortest) return;
  const { failure } = failed;
  console.log(
    `\nBROKEN ${failure?.invariant} at step ${failure?.step} of history ${histories} (seed ${failed.seed}): ${failure?.text}`,
  );
  console.log(
    `\nthe shortest history found, ${shortest.actions.length} of ${failed.actions.length} actions, breaks ${shortest.failure?.text}:`,
  );
  for (const action of shortest.actions) console.log(JSON.stringify(action));
  console.log("\nhow it ended:");
  for (const line of shortest.tail) console.log(line);
}
