/**
 * The door `makegood/testing`: what a user needs to test a store or a sink of their own, or their service with them.
 */
export type { MemoryStoreOptions } from "../store/memory/memory-store.ts";
export { createMemoryStore } from "../store/memory/memory-store.ts";
export { type AuditHarness, auditConformance, type OpenAudit } from "./audit-conformance.ts";
export { movableConformance } from "./movable-conformance.ts";
export type { Received, ReceiverMode, SinkCase, SinkHarness, SinkRig } from "./sink-conformance.ts";
export { sinkConformance } from "./sink-conformance.ts";
export type { Case, OpenTransaction, StoreHarness } from "./store-conformance/harness.ts";
export { storeConformance } from "./store-conformance/store-conformance.ts";
export { createTestClock, type TestClock } from "./test-clock.ts";
export {
  type Attempted,
  createTestMakegood,
  type DrainOptions,
  drain,
  type EnqueuedMessage,
  enqueued,
  type TestMakegood,
  type TestMakegoodOptions,
} from "./test-makegood.ts";
export { createTestStore, type TestStore, type TestTransaction } from "./test-store.ts";
export type { UsageHarness, UsageRig } from "./usage-conformance/scene.ts";
export { usageConformance } from "./usage-conformance/usage-conformance.ts";
