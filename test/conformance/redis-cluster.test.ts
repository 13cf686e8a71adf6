/** The Store conformance suite on a Redis Cluster of three masters and three replicas, through node-redis and through ioredis. */
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { beforeAll, describe, expect, it } from "vitest";
import { connectRedis, createRedisStore, fromIoredis, fromNodeRedis } from "../../src/store/redis/index.ts";
import { movableConformance, storeConformance } from "../../src/testing/index.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { freshPrefix, redisHarness } from "../support/redis-store.ts";

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startRedisCluster();
}, 60_000);

const nodeRedis = redisHarness("a Redis Cluster through node-redis", async () =>
  fromNodeRedis(createCluster({ rootNodes: [{ url: cluster.url }] })),
);
const ioredis = redisHarness("a Redis Cluster through ioredis", async () =>
  fromIoredis(new Cluster([cluster.url], { lazyConnect: true })),
);

for (const harness of [nodeRedis, ioredis]) {
  describe(harness.name, () => {
    for (const { group, name, run } of [...storeConformance(harness), ...movableConformance(harness)])
      it(`${group}: ${name}`, run);
  });
}

describe("DF-25: a Redis Cluster by its URL", () => {
  it("is found to be one, and every node is examined", async () => {
    const port = await connectRedis(cluster.url);
    try {
      expect(port.cluster).toBe(true);
      const roles = (await port.nodes()).map(({ role }) => role).sort();
      expect(roles).toEqual(["master", "master", "master", "replica", "replica", "replica"]);
    } finally {
      await port.close();
    }
  });
});

describe("DF-28: replicas that must confirm", () => {
  it("are refused in a cluster when the store is opened, not at the first message", async () => {
    const port = await connectRedis(cluster.url);
    try {
      const store = createRedisStore({ redis: port, prefix: freshPrefix(), replicas: { count: 1, timeoutMs: 100 } });
      await expect(store.open()).rejects.toMatchObject({ code: "invalid_config" });
    } finally {
      await port.close();
    }
  });
});
