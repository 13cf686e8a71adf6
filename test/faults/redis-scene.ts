/**
 * The stage of the Redis faults: a store on a server of its own, messages to enqueue, and the questions that every fault ends with:
 * is everything there that was accepted, once, and is nothing half written.
 */
import { createClient } from "redis";
import { expect } from "vitest";
import { isMakegoodError } from "../../src/message/errors.ts";
import type { ClaimedMessage, NewMessage } from "../../src/message/message.ts";
import { createIds } from "../../src/platform/ids.ts";
import { fromNodeRedis, type RedisPort, type RedisStore, type RedisStoreOptions } from "../../src/store/redis/index.ts";
import type { Store } from "../../src/store/store.ts";
import { definition, newMessage, PLAIN } from "../../src/testing/store-conformance/fixtures.ts";
import type { RedisServer } from "../support/redis-server.ts";
import { freshPrefix, openRedisStore } from "../support/redis-store.ts";

const nextId = createIds();

export const message = (fields: Partial<NewMessage> = {}): NewMessage => newMessage(nextId(), fields);

export interface RedisScene {
  readonly store: RedisStore;
  readonly port: RedisPort;
  readonly prefix: string;
  close(): Promise<void>;
}

export async function redisScene(server: RedisServer, options: Partial<RedisStoreOptions> = {}): Promise<RedisScene> {
  const port = fromNodeRedis(createClient({ url: server.url }), { timeoutMs: 1_500 });
  const prefix = freshPrefix();
  const store = await openRedisStore({ redis: port, prefix, ...options });
  await store.topics.put(definition(PLAIN), "code");
  return {
    store,
    port,
    prefix,
    async close() {
      await store.close();
      await port.close();
    },
  };
}

/** The code of what a call was refused with; `accepted` when it was not. */
export async function codeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "accepted",
    (error) => (isMakegoodError(error) ? error.code : `not ours: ${String(error)}`),
  );
}

export async function claimAll(store: Store, owner = "worker", leaseMs = 30_000): Promise<ClaimedMessage[]> {
  const lanes = (await store.lanes()).map(({ lane }) => ({ lane, limit: 1_000 }));
  return store.claim({ owner, leaseMs, lanes });
}

/** Delivers everything that is due and returns the ids, each as often as it was delivered. */
export async function deliverAll(store: Store): Promise<string[]> {
  const delivered: string[] = [];
  for (;;) {
    const claimed = await claimAll(store);
    if (claimed.length === 0) return delivered;
    const settles = claimed.map(({ id, claim, attempt }) => ({
      id,
      claim,
      attempt,
      durationMs: 1,
      settlement: { kind: "delivered", outcome: "delivered" } as const,
    }));
    const results = await store.settle(settles);
    delivered.push(...claimed.filter((_, i) => results[i] === "settled").map(({ id }) => id));
  }
}

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Every key of the store with its whole content, to be compared. */
export async function dump({ port, prefix }: RedisScene): Promise<Map<string, string>> {
  const keys = (await port.send(null, ["KEYS", `{${prefix}}:*`])) as string[];
  const content = new Map<string, string>();
  for (const key of keys.sort(byText)) {
    const kind = String(await port.send(key, ["TYPE", key]));
    const read = {
      hash: ["HGETALL", key],
      zset: ["ZRANGE", key, "0", "-1", "WITHSCORES"],
      set: ["SMEMBERS", key],
      string: ["GET", key],
      list: ["LRANGE", key, "0", "-1"],
    }[kind];
    const value = read ? await port.send(key, read) : kind;
    content.set(key, JSON.stringify(kind === "set" ? (value as string[]).sort(byText) : value));
  }
  return content;
}

/** I12: what was counted as accepted is what stands in the sets of states, each message in one, and has its hash. */
export async function conserved(scene: RedisScene): Promise<number> {
  const { store, port, prefix } = scene;
  const counted = (await store.counts({ delivered: true })).reduce((sum, { count }) => sum + count, 0);
  const flat = async (name: string) => (await port.send(`{${prefix}}:x`, ["HVALS", `{${prefix}}:${name}`])) as string[];
  const sum = (values: readonly string[]) => values.reduce((total, value) => total + Number(value), 0);
  const hashes = ((await port.send(null, ["KEYS", `{${prefix}}:m:*`])) as string[]).length;
  expect([counted, hashes]).toEqual([sum(await flat("accepted")) - sum(await flat("pruned")), counted]);
  return counted;
}
