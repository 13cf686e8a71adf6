/**
 * The test command: every suite in order, each under its headline, and one closing line over all of them. What npm cannot bring
 * is found or installed; where that is impossible, one line says what to install, and the run has failed.
 * `npm test -- --only adapters,pooler` runs those stages; anything else is handed to vitest, in the stage `unit` alone.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { MAJORS, runMajors } from "./majors/run.mjs";
import { findPgBouncer } from "./support/find-pgbouncer.mjs";
import { installPackage } from "./support/install-package.mjs";
import { REPO, runVitest } from "./support/run-vitest.mjs";

const ADAPTERS = join(REPO, "test/adapters");
const TSC = "node_modules/typescript/bin/tsc";
const SLOWEST_SHOWN = 10;
const BIOME = "node_modules/@biomejs/biome/bin/biome";

const STAGES = {
  checks: [
    "types, lint and format",
    () =>
      both(
        () => step("tsc", TSC, "-p", "tsconfig.json", "--noEmit"),
        () => step("biome", BIOME, "check", "."),
      ),
  ],
  unit: ["unit and integration, on a private PostgreSQL 18", (filters) => runVitest(["--exclude", "test/pooler/**", ...filters])],
  adapters: ["the caller's transaction, with the real libraries", adapters],
  // The newest is what `unit` runs on.
  majors: ["the store, audit and usage on the PostgreSQL majors before", () => runMajors(MAJORS.slice(0, -1))],
  pooler: ["the store through PgBouncer in transaction mode", pooler],
};

function adapters() {
  installPackage(ADAPTERS);
  const generated = step("prisma generate", join(ADAPTERS, "support/generate-prisma.mjs"));
  if (generated.failed > 0) return generated;
  return both(
    () => step("tsc", TSC, "-p", "test/adapters", "--noEmit"),
    () => runVitest(["--config", join(ADAPTERS, "vitest.config.ts")]),
  );
}

async function pooler() {
  await findPgBouncer();
  return runVitest(["test/pooler"]);
}

/** A program that must end well: counts only when it does not. */
function step(name, script, ...args) {
  const ran = spawnSync(process.execPath, [script, ...args], { cwd: REPO, stdio: "inherit" });
  console.log(`${name}: ${ran.status === 0 ? "ok" : "failed"}`);
  return { passed: 0, failed: ran.status === 0 ? 0 : 1 };
}

function both(first, second) {
  const [a, b] = [first(), second()];
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, files: [...(a.files ?? []), ...(b.files ?? [])] };
}

function choose(args) {
  const at = args.indexOf("--only");
  if (at === -1) return { names: args.length > 0 ? ["unit"] : Object.keys(STAGES), filters: args };
  const names = (args[at + 1] ?? "").split(",");
  const unknown = names.filter((name) => !(name in STAGES));
  if (unknown.length > 0) throw new Error(`--only takes ${Object.keys(STAGES).join(", ")}; not "${unknown.join(", ")}"`);
  return { names, filters: args.toSpliced(at, 2) };
}

async function main() {
  const { names, filters } = choose(process.argv.slice(2));
  const sum = { passed: 0, failed: 0 };
  const times = [];
  const slowest = [];
  for (const name of names) {
    const [headline, run] = STAGES[name];
    console.log(`\n── ${name}: ${headline}`);
    const started = performance.now();
    const {
      passed,
      failed,
      files = [],
    } = await Promise.resolve()
      .then(() => run(filters))
      .catch((error) => {
        console.log(`${name}: ${error.message}`);
        return { passed: 0, failed: 1 };
      });
    sum.passed += passed;
    sum.failed += failed;
    const seconds = Math.round((performance.now() - started) / 1_000);
    console.log(`── ${name}: ${failed === 0 ? "ok" : "FAILED"}, ${seconds} s`);
    times.push(`${name} ${seconds} s`);
    slowest.push(...files);
  }
  slowest.sort((a, b) => b.seconds - a.seconds);
  console.log(`\n── what took how long: ${times.join(", ")}`);
  for (const { file, seconds } of slowest.slice(0, SLOWEST_SHOWN)) console.log(`${seconds.toFixed(1).padStart(7)} s  ${file}`);
  console.log(`\n${sum.passed} passed, ${sum.failed} failed`);
  process.exitCode = sum.failed === 0 ? 0 : 1;
}

await main().catch((error) => {
  console.error(error.message);
  process.exitCode = 2;
});
