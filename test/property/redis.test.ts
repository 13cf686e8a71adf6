/**
 * The Redis store against the model: random walks over every command, with I2, I3, I4, I5, I7, I8 and I12 checked on the way.
 */
import { createClient } from "redis";
import { afterAll, beforeAll, it } from "vitest";
import { fromNodeRedis, type RedisPort } from "../../src/store/redis/index.ts";
import { startRedis } from "../support/redis-server.ts";
import { freshPrefix, openRedisStore } from "../support/redis-store.ts";
import { runStoreModel } from "./store-model.ts";

let port: RedisPort;

beforeAll(async () => {
  port = fromNodeRedis(createClient({ url: (await startRedis()).url }));
});
afterAll(() => port.close());

it(
  "random commands on the Redis store keep every invariant",
  () => runStoreModel(() => openRedisStore({ redis: port, prefix: freshPrefix() }), { runs: 60, commandsMax: 100 }),
  60_000,
);
