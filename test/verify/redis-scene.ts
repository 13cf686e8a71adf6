/**
 * A Redis store with messages in every state, and passes over it; and how its data is harmed by plain commands.
 */
import { createClient } from "redis";
import { createIds } from "../../src/platform/ids.ts";
import { fromNodeRedis, type RedisPort, type RedisStore } from "../../src/store/redis/index.ts";
import { definition, KEYED, PLAIN } from "../../src/testing/store-conformance/fixtures.ts";
import { freshPrefix, openRedisStore } from "../support/redis-store.ts";
import { type CaseScene, everything, type Hands, MONEY, movesOf } from "./cases.ts";

export type Ask = (...args: (string | number)[]) => Promise<unknown>;

export interface RedisVerifyScene extends CaseScene {
  readonly store: RedisStore;
  readonly prefix: string;
  /** One command; names of keys begin with `@`. */
  readonly ask: Ask;
}

export const TOPICS = [definition(PLAIN), definition(KEYED, "key"), { ...definition(MONEY), moneyField: "amount_micro" }];

export async function redisVerifyScene(
  url: string,
  { prefix = freshPrefix(), port = fromNodeRedis(createClient({ url })) }: { prefix?: string; port?: RedisPort } = {},
): Promise<RedisVerifyScene> {
  const root = `{${prefix}}:`;
  const store = await openRedisStore({ redis: port, prefix });
  for (const topic of TOPICS) await store.topics.put(topic, "code");
  const id = createIds();
  const ask: Ask = (...args) =>
    port.send(
      root,
      args.map((one) => String(one).replace(/^@/, root)),
    );
  const scene: RedisVerifyScene = {
    store,
    prefix,
    ask,
    id,
    hands: handsOf(ask),
    ...movesOf(store, id),
    async verify(reach = "whole", beside = {}) {
      await store.conservation.pass({ reach });
      return store.conservation.conclude(beside);
    },
    everything: () => everything(scene),
    async empty() {
      const kept = /^\{[^}]*\}:(t:|topics$|meta$)/;
      for (const key of (await ask("KEYS", "@*")) as string[]) if (!kept.test(key)) await ask("DEL", key);
    },
    async close() {
      await store.close();
      await port.close();
    },
  };
  return scene;
}

/** What a message says of itself: where it waits, or would wait. */
async function placeOf(ask: Ask, id: string): Promise<{ topic: string; line: string }> {
  const [head, digit] = (await ask("HMGET", `@m:${id}`, "h", "su")) as [string, string | null];
  const [topic = "", tenant = "", priority = "", okey = ""] = head.split("\u0000");
  const line = okey ? `@o:o:0:${topic}:${tenant}${okey}` : `@l:u${digit ?? 0}:${priority}:${topic}:${tenant}`;
  return { topic, line };
}

function handsOf(ask: Ask): Hands {
  const each = async (ids: readonly string[], work: (id: string) => Promise<unknown>): Promise<void> => {
    for (const id of ids) await work(id);
  };
  const account = async (): Promise<string> => {
    const [number] = (await ask("HVALS", "@books:names")) as [string];
    return `@books:b:${number}`;
  };
  return {
    async unready(ids) {
      const places = new Map<string, { topic: string; line: string }>();
      for (const id of ids) places.set(id, gone.get(id) ?? (await placeOf(ask, id)));
      for (const [id, { topic, line }] of places) {
        await ask("ZREM", line, id);
        await ask("ZREM", `@s:p:${topic}`, id);
      }
      const [first, place] = [...places][0] as [string, { topic: string; line: string }];
      return async () => {
        await ask("ZADD", place.line, 1, first);
        await ask("ZADD", `@s:p:${place.topic}`, 0, first);
      };
    },
    unwrite: (ids) =>
      each(ids, async (id) => {
        gone.set(id, await placeOf(ask, id));
        await ask("DEL", `@m:${id}`);
      }),
    async waitToo(id) {
      const { line } = await placeOf(ask, id);
      await ask("ZADD", line, 9e15, id);
    },
    async dieToo(id) {
      const { topic } = await placeOf(ask, id);
      await ask("ZADD", `@s:o:${topic}`, 0, id);
    },
    undie: (ids) => each(ids, async (id) => ask("ZREM", `@s:o:${(await placeOf(ask, id)).topic}`, id)),
    repay: (ids, payload) => each(ids, (id) => ask("HSET", `@m:${id}`, "p", payload)),
    async rename(id, to) {
      const { topic } = await placeOf(ask, id);
      await ask("RENAME", `@m:${id}`, `@m:${to}`);
      for (const set of [`@s:d:${topic}`, "@settled"]) {
        const score = String(await ask("ZSCORE", set, id));
        await ask("ZREM", set, id);
        await ask("ZADD", set, score, to);
      }
    },
    evenOut: async () => {},
    editAccount: async () => void (await ask("HSET", await account(), "an", 2, "ah", 0)),
    editSealedMoney: async (amount) => void (await ask("HSET", await account(), "am", amount)),
    async editSeal() {
      const seal = String(await ask("HGET", "@books:seals", 1));
      await ask("HSET", "@books:seals", 1, seal.replace('"4"', '"3"'));
    },
    cutSeals: async () => void (await ask("DEL", "@books:seals")),
  };
}

/** Where messages were that are deleted now. */
const gone = new Map<string, { topic: string; line: string }>();
