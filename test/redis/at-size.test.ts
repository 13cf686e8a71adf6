/**
 * N21: what Redis is asked for does not grow with what is there: a page by tenant looks at each message once, however many topics there are,
 * and very many lanes come in pieces. Counted in commands, because time is the machine's.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { definition } from "../../src/testing/store-conformance/fixtures.ts";
import { deliverAll, message, type RedisScene, redisScene } from "../faults/redis-scene.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";

const TOPICS = 60;
let server: RedisServer;
let scene: RedisScene;

beforeAll(async () => {
  server = await startRedis();
  scene = await redisScene(server);
  for (let i = 0; i < TOPICS; i++) await scene.store.topics.put(definition(`at/size${i}`), "code");
  for (let from = 0; from < 3_000; from += 500) {
    const some = Array.from({ length: 500 }, (_, i) => from + i);
    await scene.store.enqueue(
      some.map((n) => message({ topic: `at/size${n % TOPICS}`, tenantId: n === 7 ? "rare" : `tenant-${n % 25}` })),
    );
  }
});
afterEach(() => scene.port.send(null, ["CONFIG", "RESETSTAT"]));
afterAll(async () => {
  await scene.close();
  await server.stop();
});

const calls = async (command: string) =>
  Number(
    new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(String(await scene.port.send(null, ["INFO", "commandstats"])))?.[1] ?? 0,
  );

describe("Redis at size", () => {
  it("a page of a rare tenant among many topics looks at each message once, and reads each set in a few pieces", async () => {
    const page = await scene.store.list({ tenantId: "rare", limit: 20 });
    expect(page.data.map(({ topic }) => topic)).toEqual(["at/size7"]);
    expect(await calls("zrevrangebylex")).toBeLessThan(1_000);
    expect(await calls("hget")).toBeLessThan(4_000);
  });

  it("pages over all topics name each message once, newest first", async () => {
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await scene.store.list({ limit: 500, payload: false, cursor });
      ids.push(...page.data.map(({ id }) => id));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(ids).toHaveLength(3_000);
    expect(new Set(ids).size).toBe(3_000);
    expect(ids).toEqual([...ids].sort((a, b) => (a < b ? 1 : -1)));
  });

  it("counts are sizes of sets, and a lane that is empty is not looked at", async () => {
    const counts = await scene.store.counts();
    expect(counts.reduce((sum, { count }) => sum + count, 0)).toBe(3_000);
    expect(await calls("zrange")).toBeLessThan(4 * TOPICS);
    expect(await deliverAll(scene.store)).toHaveLength(3_000);
    await scene.port.send(null, ["CONFIG", "RESETSTAT"]);
    expect(await scene.store.lanes()).toEqual([]);
    expect(await calls("zrange")).toBe(0);
  });
});
