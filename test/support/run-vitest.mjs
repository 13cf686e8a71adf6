/**
 * Runs vitest once and counts from its own report. A run that fails without a failed test (a file that does not load, an error
 * nobody caught) counts as one failure, so that no sum can hide it.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { REPO, runProgram } from "./run-program.mjs";

/** `kept`: what it says is shown in one piece, at the end. `quiet`: says nothing but what failed, and that at the end. */
export async function runVitest(args, { env = {}, quiet = false, kept = quiet } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "makegood-report-"));
  const report = join(folder, "report.json");
  const reporters = [...(quiet ? [] : ["--reporter=default"]), "--reporter=json", `--outputFile.json=${report}`];
  const started = performance.now();
  try {
    const vitest = await runProgram([join(REPO, "node_modules/vitest/vitest.mjs"), "run", ...args, ...reporters], { env, kept });
    const seconds = Math.round((performance.now() - started) / 1_000);
    const { passed, failed, failures, files, again } = read(report);
    const unseen = vitest.status !== 0 && failed === 0 ? 1 : 0;
    if (kept && !quiet) console.log(vitest.output);
    if (quiet) for (const line of failures) console.log(`  ✗ ${line}`);
    if (unseen) console.log(quiet ? vitest.output : "vitest failed without a failed test: see above");
    return { passed, failed: failed + unseen, seconds, files, again, failures };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function read(path) {
  let report;
  try {
    report = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return { passed: 0, failed: 0, failures: [], files: [], again: [] }; // it did not come that far
  }
  const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  const broken = report.testResults.filter(
    ({ status, assertionResults }) => status === "failed" && assertionResults.length === 0,
  );
  const failed = tests.filter(({ status }) => status === "failed");
  return {
    passed: tests.filter(({ status }) => status === "passed").length,
    failed: failed.length + broken.length,
    files: report.testResults.map(({ name, startTime, endTime }) => ({
      file: relative(REPO, name),
      seconds: (endTime - startTime) / 1_000,
    })),
    // Why the first try failed: what is unsteady is mended, and for that one has to know.
    again: tests.filter(({ status, failureMessages }) => status === "passed" && failureMessages.length > 0).map(shown),
    failures: [...broken.map(({ name, message }) => `${relative(REPO, name)}: ${message}`), ...failed.map(shown)],
  };
}

function shown({ fullName, failureMessages }) {
  return `${fullName}\n    ${failureMessages.join("\n").split("\n").slice(0, 6).join("\n    ")}`;
}
