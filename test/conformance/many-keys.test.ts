/**
 * The group `many keys` with 100,000 keys on every store: minutes, so only `npm run soak:order` has it; the suites beside
 * this one have it with 10 and 1,000.
 */
import { createClient, createCluster } from "redis";
import { beforeAll, describe, it } from "vitest";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import { fromNodeRedis } from "../../src/store/redis/index.ts";
import { type StoreHarness, storeConformance } from "../../src/testing/index.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { redisHarness } from "../support/redis-store.ts";
import { postgresHarness } from "./postgres-harness.ts";

const SOAK_MS = 1_800_000;
let server: RedisServer;
let cluster: RedisCluster;

const memory: StoreHarness = {
  name: "memory",
  async open() {
    const store = createMemoryStore();
    await store.open();
    return store;
  },
};

describe("100,000 ordering keys", () => {
  beforeAll(async () => {
    server = await startRedis();
    cluster = await startRedisCluster();
  }, 60_000);
  const redis = redisHarness("redis", async () => fromNodeRedis(createClient({ url: server.url })));
  const ofCluster = async () => fromNodeRedis(createCluster({ rootNodes: [{ url: cluster.url }] }));
  for (const harness of [memory, postgresHarness(), redis, redisHarness("redis cluster", ofCluster)]) {
    for (const { group, name, run } of storeConformance(harness, { large: true })) {
      if (group === "many keys" && name.includes("100,000")) it(`${harness.name}: ${name}`, run, SOAK_MS);
    }
  }
});
