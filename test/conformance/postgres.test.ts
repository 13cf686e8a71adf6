/** The Store conformance suite on PostgreSQL. */
import { describe, it } from "vitest";
import { storeConformance } from "../../src/testing/index.ts";
import { postgresHarness } from "./postgres-harness.ts";

describe("the PostgreSQL store", () => {
  for (const { group, name, run } of storeConformance(postgresHarness())) it(`${group}: ${name}`, run);
});
