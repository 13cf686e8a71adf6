/**
 * The calls of a history to a real PostgreSQL and a real Redis: each answer is the memory store's, as far as the seam promises it.
 */
import { describe, expect, it } from "vitest";
import { dropSchema, openStore } from "../support/postgres.ts";
import { startRedis } from "../support/redis-server.ts";
import { openRedisStore } from "../support/redis-store.ts";
import { compare } from "./compare.ts";

const STEPS = process.env.MAKEGOOD_SOAK === "1" ? 20_000 : 2_000;
const SEEDS = process.env.MAKEGOOD_SOAK === "1" ? Array.from({ length: 20 }, (_, i) => i + 1) : [1, 2];

describe("the same calls, the same answers", () => {
  it.each(SEEDS)(
    "PostgreSQL, seed %i",
    async (seed) => {
      const store = await openStore();
      const { difference, calls } = await compare(seed, STEPS, store);
      expect(difference).toBeNull();
      expect(calls).toBeGreaterThan(100);
      await store.close();
      await dropSchema(store.schema);
    },
    300_000,
  );

  it("Redis", async () => {
    const { url } = await startRedis();
    for (const seed of SEEDS) {
      const store = await openRedisStore({ redis: url, prefix: `s${seed}` });
      const { difference, calls } = await compare(seed, STEPS, store);
      expect(difference, `seed ${seed}`).toBeNull();
      expect(calls).toBeGreaterThan(100);
      await store.close();
    }
  }, 300_000);
});
