/**
 * The memory store against the model: random walks over every command, with I2, I3, I4, I5, I7, I8 and I12 checked on the way.
 */
import { it } from "vitest";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import { runStoreModel } from "./store-model.ts";

it("random commands on the memory store keep every invariant", () => runStoreModel(async () => createMemoryStore()), 60_000);
