import type { Case, StoreHarness } from "./harness.ts";
/** The cases a store must pass; each opens a fresh store and closes it again. They may run at once. */
export declare function storeConformance(harness: StoreHarness): Case[];
