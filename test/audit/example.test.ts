/**
 * examples/audit as a new user runs it: one command, exit code 0, and every line it prints holds.
 */
import { expect, it } from "vitest";
import { builtDist } from "../support/build.ts";
import { databaseUrl } from "../support/postgres.ts";
import { runExample } from "../support/run-example.ts";

it("examples/audit proves what it says", async () => {
  const { PATH = "", HOME = "" } = process.env;
  const env = { PATH, HOME, MAKEGOOD_DIST: await builtDist(), DATABASE_URL: databaseUrl() };
  const stdout = await runExample("audit", env);
  expect(stdout).not.toContain("FAIL");
  expect(stdout.match(/^ok /gm)?.length).toBe(10);
  expect(stdout).toMatch(/all of it holds\n$/);
}, 120_000);
