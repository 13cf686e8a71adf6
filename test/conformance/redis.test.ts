/** The Store conformance suite on one Redis, through node-redis and through ioredis. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { beforeAll, describe, it } from "vitest";
import { fromIoredis, fromNodeRedis } from "../../src/store/redis/index.ts";
import { movableConformance, storeConformance } from "../../src/testing/index.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { redisHarness } from "../support/redis-store.ts";

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});

const nodeRedis = redisHarness("redis through node-redis", async () => fromNodeRedis(createClient({ url: server.url })));
const ioredis = redisHarness("redis through ioredis", async () => fromIoredis(new Redis(server.url, { lazyConnect: true })));

for (const harness of [nodeRedis, ioredis]) {
  describe(harness.name, () => {
    for (const { group, name, run } of [...storeConformance(harness), ...movableConformance(harness)])
      it(`${group}: ${name}`, run);
  });
}
