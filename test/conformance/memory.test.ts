/**
 * The memory store against the Store conformance suite.
 */
import { describe, it } from "vitest";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import { movableConformance, type StoreHarness, storeConformance } from "../../src/testing/index.ts";

const harness: StoreHarness = {
  name: "memory",
  async open() {
    const store = createMemoryStore();
    await store.open();
    return store;
  },
};

describe("memory store", () => {
  for (const { group, name, run } of [...storeConformance(harness), ...movableConformance(harness)]) it(`${group}: ${name}`, run);
});
