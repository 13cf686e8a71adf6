/**
 * The seeds' port with many entries of many tenants, on every store: getReady() asks the store twice, for lanes and for one page, and shows
 * the batch that is due longest; what waits is counted, not read.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import type { DLQEntry } from "../../src/store/redis/dlq-port/dlq-store.ts";
import { TOPIC } from "../../src/store/redis/dlq-port/entry.ts";
import { portOver } from "../../src/store/redis/dlq-port/port.ts";
import { createRedisStore } from "../../src/store/redis/redis-store.ts";
import type { Store } from "../../src/store/store.ts";
import { dropSchema, freshSchema, openStore } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { owed } from "./dlq-port-suite.ts";

const TENANTS = 60;
const ENTRIES = 1_500;
const BATCH = 50;

let redis: RedisServer;
const schema = freshSchema();
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  await redis.stop();
  await dropSchema(schema);
});

const STORES: Readonly<Record<string, () => Promise<Store>>> = {
  memory: async () => createMemoryStore(),
  redis: async () => createRedisStore({ redis: redis.url }),
  postgres: () => openStore({ schema }),
};

/** The store, and the names of the calls that read messages. */
function counted(store: Store): { store: Store; calls: string[] } {
  const calls: string[] = [];
  const noted =
    <A extends unknown[], T>(name: string, call: (...args: A) => T) =>
    (...args: A): T => {
      calls.push(name);
      return call(...args);
    };
  const { lanes, list, counts, get, history } = store;
  const over = { lanes: noted("lanes", lanes), list: noted("list", list), counts: noted("counts", counts) };
  return { store: { ...store, ...over, get: noted("get", get), history: noted("history", history) }, calls };
}

for (const [name, open] of Object.entries(STORES)) {
  it(`FIN-24: the fifty that are due longest, of ${ENTRIES} entries of ${TENANTS} tenants, cost two calls on ${name}`, async () => {
    const { store, calls } = counted(await open());
    const port = portOver(store, { batchLimit: BATCH });
    try {
      await port.count();
      const put = (i: number, delayMs = 0) => port.put(owed(`r-${i}`, { tenant_id: `tenant-${i % TENANTS}` }), { delayMs });
      const later = ENTRIES / 3;
      for (let i = 0; i < ENTRIES; i++) await put(i, i < later ? 3_600_000 : 0);
      const dues: number[] = [];
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page = await store.list({ topic: TOPIC, status: "pending", limit: 1_000, cursor });
        dues.push(...page.data.map(({ nextAttemptAt }) => nextAttemptAt?.getTime() as number));
        cursor = page.nextCursor;
      }
      dues.sort((a, b) => a - b);
      const dueOf = (ready: readonly DLQEntry[]) => ready.map(({ next_attempt_at }) => Date.parse(next_attempt_at));
      // Lanes say when they are due to the millisecond: of two that differ by less either may come first.
      const oldest = (ready: readonly DLQEntry[], before: number) => {
        expect(ready).toHaveLength(BATCH);
        expect(dueOf(ready)).toEqual(dueOf(ready).sort((a, b) => a - b));
        expect(dueOf(ready).at(-1)).toBeLessThanOrEqual(Number(dues[before + BATCH - 1]) + 1);
      };

      calls.length = 0;
      const ready = await port.getReady();
      expect(calls).toEqual(["lanes", "list"]);
      oldest(ready, 0);
      const gauges = { due: ENTRIES - later, waiting: later, claimed: 0, terminal: 0, quarantined: 0 };
      calls.length = 0;
      expect(await port.gauges()).toEqual(gauges);
      expect(calls).toEqual(["lanes", "counts", "list"]);
      for (const { reservation_id } of ready) await port.delete(reservation_id);
      oldest(await port.getReady(), BATCH);
    } finally {
      await store.close();
    }
  });
}
