/**
 * Both stores as worker processes and a test share them: a store for the test, and the environment that makes `makegood work` use the same.
 */
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { createRedisStore } from "../../src/store/redis/index.ts";
import type { Store } from "../../src/store/store.ts";
import { databaseUrl, dropSchema, freshSchema } from "./postgres.ts";
import { DURABLE, startRedis } from "./redis-server.ts";

export interface Stage {
  readonly store: Store;
  readonly env: Record<string, string>;
  readonly drop: () => Promise<void>;
}

export const STAGES: Record<string, () => Promise<Stage>> = {
  async PostgreSQL() {
    const schema = freshSchema();
    const env = { MAKEGOOD_STORE: "postgres", DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema, MAKEGOOD_RECOVERY: "off" };
    return { store: createPostgresStore({ url: databaseUrl(), schema }), env, drop: () => dropSchema(schema) };
  },
  async Redis() {
    const server = await startRedis(DURABLE);
    const env = { MAKEGOOD_STORE: "redis", REDIS_URL: server.url, MAKEGOOD_RECOVERY: "off" };
    return { store: createRedisStore({ redis: server.url }), env, drop: () => server.stop() };
  },
};
