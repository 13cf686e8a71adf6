/** The Store conformance suite on PostgreSQL. */
import { describe, it } from "vitest";
import { movableConformance, storeConformance } from "../../src/testing/index.ts";
import { postgresHarness } from "./postgres-harness.ts";

describe("the PostgreSQL store", () => {
  const harness = postgresHarness();
  for (const { group, name, run } of [...storeConformance(harness), ...movableConformance(harness)]) it(`${group}: ${name}`, run);
});
