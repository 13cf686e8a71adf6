/**
 * examples/audit as a new user runs it: one command, exit code 0, and every line it prints holds.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { builtDist } from "../support/build.ts";
import { databaseUrl } from "../support/postgres.ts";

it("examples/audit proves what it says", async () => {
  const script = new URL("../../examples/audit/run.mjs", import.meta.url).pathname;
  const { PATH = "", HOME = "" } = process.env;
  const env = { PATH, HOME, MAKEGOOD_DIST: join(await builtDist()), DATABASE_URL: databaseUrl() };
  const { stdout } = await promisify(execFile)(process.execPath, [script], { env, timeout: 100_000 });
  expect(stdout).not.toContain("FAIL");
  expect(stdout.match(/^ok /gm)?.length).toBe(10);
  expect(stdout).toMatch(/all of it holds\n$/);
}, 120_000);
