/**
 * The Redis store as the conformance suite wants it: each case under a prefix of its own, several instances on the same data,
 * and a reopen that shares no connection with what was before.
 */
import { randomBytes } from "node:crypto";
import { afterAll } from "vitest";
import { createRedisStore, type RedisPort, type RedisStore, type RedisStoreOptions } from "../../src/store/redis/index.ts";
import type { Store } from "../../src/store/store.ts";
import type { StoreHarness } from "../../src/testing/store-conformance/harness.ts";

export const freshPrefix = (): string => `t${randomBytes(6).toString("hex")}`;

export async function openRedisStore(options: RedisStoreOptions): Promise<RedisStore> {
  const store = createRedisStore(options);
  await store.open();
  return store;
}

/** `connect` makes a port. Two are shared by all cases, as two processes would have them; a reopen has one of its own. */
export function redisHarness(name: string, connect: () => Promise<RedisPort>): StoreHarness {
  const prefixes = new WeakMap<Store, string>();
  const ports: Promise<RedisPort>[] = [];
  const shared = (n: number): Promise<RedisPort> => {
    ports[n] ??= connect();
    return ports[n];
  };
  afterAll(async () => {
    for (const port of ports) await (await port).close();
  });

  async function open(prefix: string, port: RedisPort): Promise<RedisStore> {
    const store = await openRedisStore({ redis: port, prefix });
    prefixes.set(store, prefix);
    return store;
  }
  return {
    name,
    open: async () => open(freshPrefix(), await shared(0)),
    another: async (store) => open(prefixes.get(store) as string, await shared(1)),
    async reopen(store) {
      await store.close();
      const port = await connect();
      const again = await open(prefixes.get(store) as string, port);
      const { close } = again;
      again.close = async () => {
        await close();
        await port.close();
      };
      return again;
    },
  };
}
