/**
 * The old address of memory-store.ts; it goes as soon as nobody imports it any more.
 */
export { createMemoryStore, type MemoryStoreOptions } from "./memory-store.ts";
