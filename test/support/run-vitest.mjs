/**
 * Runs vitest once and counts from its own report. A run that fails without a failed test (a file that does not load, an error
 * nobody caught) counts as one failure, so that no sum can hide it.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const REPO = fileURLToPath(new URL("../..", import.meta.url));

/** `quiet`: says nothing but what failed. */
export function runVitest(args, { env = {}, quiet = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "makegood-report-"));
  const report = join(folder, "report.json");
  const reporters = [...(quiet ? [] : ["--reporter=default"]), "--reporter=json", `--outputFile.json=${report}`];
  const started = performance.now();
  try {
    const vitest = spawnSync(process.execPath, [join(REPO, "node_modules/vitest/vitest.mjs"), "run", ...args, ...reporters], {
      cwd: REPO,
      env: { ...process.env, ...env },
      stdio: quiet ? "pipe" : "inherit",
      encoding: "utf8",
      maxBuffer: 2 ** 28,
    });
    const seconds = Math.round((performance.now() - started) / 1_000);
    const { passed, failed, failures, files } = read(report);
    const unseen = vitest.status !== 0 && failed === 0 ? 1 : 0;
    if (quiet) for (const line of failures) console.log(line);
    if (unseen) console.log(quiet ? `${vitest.stdout}${vitest.stderr}` : "vitest failed without a failed test: see above");
    return { passed, failed: failed + unseen, seconds, files };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function read(path) {
  let report;
  try {
    report = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return { passed: 0, failed: 0, failures: [], files: [] }; // it did not come that far
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
    failures: [
      ...broken.map(({ name, message }) => `  ✗ ${name}: ${message}`),
      ...failed.map(
        ({ fullName, failureMessages }) =>
          `  ✗ ${fullName}\n    ${failureMessages.join("\n").split("\n").slice(0, 6).join("\n    ")}`,
      ),
    ],
  };
}
