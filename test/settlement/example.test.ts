/**
 * The example runs as a new user would run it, and everything it says it proves holds.
 */
import { expect, it } from "vitest";
import { builtDist } from "../support/build.ts";
import { runExample } from "../support/run-example.ts";

it("examples/billing: a billing service and its flaky counterpart", { timeout: 120_000 }, async () => {
  const { DATABASE_URL: _ours, ...environment } = process.env;
  const env = { ...environment, MAKEGOOD_DIST: await builtDist() };
  const stdout = await runExample("billing", env);
  expect(stdout).not.toMatch(/^FAIL/m);
  expect(stdout).toMatch(/all of it holds\n$/);
  expect(stdout.match(/^ok /gm)?.length).toBeGreaterThanOrEqual(9);
});
