/** The recovery conformance suite on PostgreSQL. */
import { afterAll, describe, it } from "vitest";
import { recoveryConformance } from "../../src/testing/index.ts";
import { postgresRecovery } from "./postgres-harness.ts";

const harness = postgresRecovery();
afterAll(() => harness.drop());

describe("recovery on PostgreSQL", () => {
  for (const { group, name, run } of recoveryConformance(harness)) it(`${group}: ${name}`, run);
});
