/**
 * The seeds' port in memory, on the memory store, and what the preset runs on without Redis (FIN-2). It never says that it is durable.
 */
import { type Clock, systemClock } from "../../../platform/clock.ts";
import { type Random, systemRandom } from "../../../platform/random.ts";
import { createMemoryStore } from "../../memory/memory-store.ts";
import type { DLQPort, DLQStoreOptions } from "./dlq-store.ts";
import { createDLQPort } from "./port.ts";

export interface MemoryDLQStoreOptions extends DLQStoreOptions {
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

export function createMemoryDLQStore(options: MemoryDLQStoreOptions = {}): DLQPort {
  const { clock = systemClock, random = systemRandom } = options;
  const store = createMemoryStore({ clock, random });
  return createDLQPort({ ...options, store });
}
