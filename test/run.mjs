/**
 * The test command: every suite in order, each under its headline, and one closing line over all of them. What npm cannot bring
 * is found or installed; where that is impossible, one line says what to install, and the run has failed.
 * `npm test -- --quick` runs what needs no server, in less than two minutes; `npm test -- --only adapters,pooler` runs those stages;
 * `--measure` writes down what each file took, by which the next run orders them; anything else is handed to vitest and chooses
 * among the files of `unit`, `memory` and `servers`.
 */
import { join } from "node:path";
import { MAJORS, runMajors } from "./majors/run.mjs";
import { findPgBouncer } from "./support/find-pgbouncer.mjs";
import { installPackage } from "./support/install-package.mjs";
import { REPO, runProgram } from "./support/run-program.mjs";
import { runVitest } from "./support/run-vitest.mjs";
import { writeDurations } from "./support/write-durations.mjs";

const ADAPTERS = join(REPO, "test/adapters");
const TSC = "node_modules/typescript/bin/tsc";
const SLOWEST_SHOWN = 10;
const BIOME = "node_modules/@biomejs/biome/bin/biome";
/** Each of them leaves a core idle for a while, for an installation, a clock or one long file: those of a group run side by side. */
const BESIDE = [
  ["checks", "memory"],
  ["servers", "adapters", "majors", "pooler"],
];
const QUICK = ["checks", "unit", "memory"];

const STAGES = {
  checks: [
    "types, lint and format, house rules and documents",
    () =>
      together(
        step("tsc", TSC, "-p", "tsconfig.json", "--noEmit"),
        step("biome", BIOME, "check", "."),
        runVitest(["--project", "house"], { kept: true }),
      ),
  ],
  unit: ["what needs no server, process or file", (filters) => vitest("unit", filters)],
  memory: ["the memory store: conformance, properties, simulation", (filters) => vitest("memory", filters, { kept: true })],
  servers: ["real stores, servers, processes and faults, on a private PostgreSQL 18", (filters) => vitest("servers", filters)],
  adapters: ["the caller's transaction, with the real libraries", adapters],
  // The newest is what `servers` runs on.
  majors: ["the store, audit and usage on the PostgreSQL majors before", () => runMajors(MAJORS.slice(0, -1))],
  pooler: ["the store through PgBouncer in transaction mode", pooler],
};

const CHOSEN = ["the files that were named", (filters) => runVitest(filters)];

function vitest(project, filters, how) {
  return runVitest(["--project", project, ...filters], how);
}

async function adapters() {
  await installPackage(ADAPTERS);
  const generated = await step("prisma generate", join(ADAPTERS, "support/generate-prisma.mjs"));
  if (generated.failed > 0) return generated;
  return together(
    step("tsc", TSC, "-p", "test/adapters", "--noEmit"),
    runVitest(["--config", join(ADAPTERS, "vitest.config.ts")], { kept: true }),
  );
}

async function pooler() {
  await findPgBouncer();
  return runVitest(["--project", "pooler"], { kept: true });
}

/** A program that must end well: counts only when it does not. */
async function step(name, script, ...args) {
  const { status, output } = await runProgram([script, ...args], { kept: true });
  console.log(`${output}${name}: ${status === 0 ? "ok" : "failed"}`);
  return { passed: 0, failed: status === 0 ? 0 : 1, failures: status === 0 ? [] : [name] };
}

async function together(...running) {
  const ended = await Promise.all(running);
  const sum = (of) => ended.reduce((so, one) => so + one[of], 0);
  const all = (of) => ended.flatMap((one) => one[of] ?? []);
  return { passed: sum("passed"), failed: sum("failed"), files: all("files"), again: all("again"), failures: all("failures") };
}

function choose(args) {
  const at = args.indexOf("--only");
  if (args.includes("--quick")) {
    process.env.MAKEGOOD_QUICK = "1";
    return { names: QUICK, filters: args.filter((arg) => arg !== "--quick") };
  }
  if (at === -1) return { names: args.length > 0 ? ["chosen"] : Object.keys(STAGES), filters: args };
  const names = (args[at + 1] ?? "").split(",");
  const unknown = names.filter((name) => !(name in STAGES));
  if (unknown.length > 0) throw new Error(`--only takes ${Object.keys(STAGES).join(", ")}; not "${unknown.join(", ")}"`);
  return { names, filters: args.toSpliced(at, 2) };
}

async function runStage(name, filters) {
  const [headline, run] = STAGES[name] ?? CHOSEN;
  console.log(`\n── ${name}: ${headline}`);
  const started = performance.now();
  const result = await Promise.resolve()
    .then(() => run(filters))
    .catch((error) => {
      console.log(`${name}: ${error.message}`);
      return { passed: 0, failed: 1, failures: [`${name}: ${error.message}`] };
    });
  const seconds = Math.round((performance.now() - started) / 1_000);
  console.log(`── ${name}: ${result.failed === 0 ? "ok" : "FAILED"}, ${seconds} s`);
  return { name, seconds, ...result };
}

/** In the order of the names, each with those that run beside it. */
function grouped(names) {
  const groups = names.map((name) =>
    (BESIDE.find((group) => group.includes(name)) ?? [name]).filter((one) => names.includes(one)),
  );
  return groups.filter(([first], at) => groups.findIndex((group) => group[0] === first) === at);
}

async function main() {
  const args = process.argv.slice(2);
  const { names, filters } = choose(args.filter((arg) => arg !== "--measure"));
  const started = performance.now();
  const results = [];
  for (const group of grouped(names)) results.push(...(await Promise.all(group.map((name) => runStage(name, filters)))));

  const sum = { passed: 0, failed: 0 };
  for (const { passed, failed } of results) {
    sum.passed += passed;
    sum.failed += failed;
  }
  const slowest = results.flatMap(({ files = [] }) => files);
  slowest.sort((a, b) => b.seconds - a.seconds);
  const times = results.map(({ name, seconds }) => `${name} ${seconds} s`).join(", ");
  const besides = grouped(names)
    .flatMap((group) => (group.length > 1 ? [` (${group.join(", ")} side by side)`] : []))
    .join("");
  console.log(`\n── what took how long: ${times}${besides}; all ${Math.round((performance.now() - started) / 1_000)} s`);
  for (const { file, seconds } of slowest.slice(0, SLOWEST_SHOWN)) console.log(`${seconds.toFixed(1).padStart(7)} s  ${file}`);
  if (args.includes("--measure")) writeDurations(slowest);
  for (const text of results.flatMap(({ again = [] }) => again)) console.log(`\nsecond try: ${text}`);
  // Once more at the end: of a long output the end is what is kept.
  for (const text of results.flatMap(({ failures = [] }) => failures)) console.log(`\nfailed: ${text}`);
  console.log(`\n${sum.passed} passed, ${sum.failed} failed`);
  process.exitCode = sum.failed === 0 ? 0 : 1;
}

await main().catch((error) => {
  console.error(error.message);
  process.exitCode = 2;
});
