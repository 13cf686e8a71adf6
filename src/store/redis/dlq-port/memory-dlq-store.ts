/**
 * The seeds' port in memory, on the memory store, and what the preset runs on without Redis (FIN-2). It never says that it is durable.
 */
import { createMemoryStore, type MemoryStoreOptions } from "../../memory/memory-store.ts";
import type { DLQPort, DLQStoreOptions } from "./dlq-store.ts";
import { createDLQPort } from "./port.ts";

export interface MemoryDLQStoreOptions extends DLQStoreOptions, MemoryStoreOptions {}

export function createMemoryDLQStore(options: MemoryDLQStoreOptions = {}): DLQPort {
  return createDLQPort({ ...options, store: createMemoryStore(options) });
}
