/** The recovery seam's conformance suite on the memory store. */
import { describe, it } from "vitest";
import { createMemoryStore, type RecoveryHarness, recoveryConformance } from "../../src/testing/index.ts";

const memory: RecoveryHarness = {
  name: "memory",
  async open() {
    const store = createMemoryStore();
    await store.open();
    return { store, close: () => store.close() };
  },
};

describe("recovery in memory", () => {
  for (const { group, name, run } of recoveryConformance(memory)) it(`${group}: ${name}`, run);
});
