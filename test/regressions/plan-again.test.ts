/**
 * `where id in (select … limit n for update skip locked)` takes more than n wherever the planner reads the inner select again for each
 * outer row: the rows it took already are passed over, and the next ones count as the first n. Which plan is chosen depends on
 * statistics, so it happened once in hundreds of runs; here the planner has no other choice.
 */
import { describe, it } from "vitest";
import { storeConformance } from "../../src/testing/index.ts";
import { postgresHarness } from "../conformance/postgres-harness.ts";
import { databaseUrl } from "../support/postgres.ts";

const OFF = ["hashjoin", "mergejoin", "material", "hashagg", "sort", "memoize"].map((way) => `-c enable_${way}=off`).join(" ");
const GROUPS = ["reclaim", "workers"];

function nestedLoopsOnly(): string {
  const url = new URL(databaseUrl());
  url.searchParams.set("options", OFF);
  return url.href;
}

describe("where the planner reads an inner select again", () => {
  const cases = storeConformance(postgresHarness({ url: nestedLoopsOnly() })).filter(({ group }) => GROUPS.includes(group));
  for (const { group, name, run } of cases) it(`${group}: ${name}`, run);
});
