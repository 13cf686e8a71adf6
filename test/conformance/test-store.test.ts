/**
 * C8: the store that makegood/testing gives to unit tests, against the Store conformance suite: everything the memory store does, and the group
 * `transactions` with transactions that are faked. What it cannot fake stands in src/testing/test-store.ts.
 */
import { describe, it } from "vitest";
import { createTestStore, type StoreHarness, storeConformance, type TestStore } from "../../src/testing/index.ts";

const harness: StoreHarness = {
  name: "test store",
  async open() {
    const store = createTestStore();
    await store.open();
    return store;
  },
  async transaction(store) {
    const tx = (store as TestStore).begin();
    return { tx, commit: tx.commit, rollback: tx.rollback };
  },
  pool: () => ({ query: async () => ({ rows: [] }) }),
};

describe("C8: test store", () => {
  for (const { group, name, run } of storeConformance(harness)) it(`${group}: ${name}`, run);
});
