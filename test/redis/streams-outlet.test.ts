/** The outlet: dead letters of a store on a stream, each once per death, with everything that is known about them. */
import { createClient } from "redis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createMakegood, createMemoryStore, type Makegood, MakegoodError, reject, retry, topic } from "../../src/index.ts";
import { fromNodeRedis, type RedisPort } from "../../src/store/redis/port.ts";
import { type OutletNotice, startOutlet } from "../../src/store/redis/streams/outlet.ts";
import { until } from "../delivery/support.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";

const STREAM = "m10:evaluate:dead-letter";

describe("the outlet", () => {
  let server: RedisServer;
  let redis: RedisPort;
  let mg: Makegood;
  const orders = topic<{ n: number }>("a/orders", {
    retry: { attemptsMax: 2, baseMs: 1, maxMs: 2 },
    sink: ({ n }) => (n % 2 === 0 ? retry("busy", { code: "http_503" }) : reject("no such order", { code: "http_422" })),
  });
  const send = (...args: string[]) => redis.send(null, args);
  const published = async (): Promise<Record<string, string>[]> =>
    ((await send("XRANGE", STREAM, "-", "+")) as [string, string[]][]).map(([, flat]) =>
      Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1] as string]] : []))),
    );
  const dead = async (): Promise<number> =>
    (await mg.store.list({ status: "dead", resolution: "open", limit: 1_000 })).data.length;
  /** Passes only when the test asks for one. */
  const open = (over: { redis?: RedisPort; onNotice?: (notice: OutletNotice) => void } = {}) =>
    startOutlet({ redis, store: mg.store, stream: STREAM, everyMs: 3_600_000, ...over });

  beforeAll(async () => {
    server = await startRedis();
    redis = fromNodeRedis(createClient({ url: server.url }));
    mg = await createMakegood({ store: createMemoryStore(), topics: [orders], pollMs: 10 });
    mg.work();
  });
  beforeEach(async () => {
    await send("FLUSHALL");
  });
  afterAll(async () => {
    await mg.close();
    await redis.close();
    await server.stop();
  });

  it("DA-8: publishes the full record with its error history, once, and again when it dies again", async () => {
    const { id } = await mg.enqueue(orders, { n: 0 }, { key: "order-0", tenantId: "t" });
    await until(async () => (await dead()) === 1);
    await using outlet = open();
    await until(async () => (await published()).length === 1);
    expect(await outlet.pass()).toBe(0);
    const [record] = await published();
    expect(record).toMatchObject({
      ...{ id, topic: "a/orders", key: "order-0", tenant_id: "t", payload: '{"n":0}' },
      ...{ attempts: "2", last_code: "http_503", last_error: "busy" },
    });
    expect(JSON.parse(record?.history as string)).toMatchObject([
      { attempt: 1, outcome: "retry", code: "http_503", error: "busy" },
      { attempt: 2, outcome: "retry", code: "http_503", error: "busy" },
    ]);
    await mg.replay(id, { actor: "ada", reason: "try again" });
    await until(async () => (await dead()) === 1);
    expect(await outlet.pass()).toBe(1);
    const [, second] = await published();
    expect(JSON.parse(second?.provenance as string)).toMatchObject([{ actor: "ada", action: "replay", reason: "try again" }]);
    expect(second?.attempts).toBe("4");
    await mg.discard(id, { actor: "ada", reason: "enough" });
    await send("FLUSHALL");
    expect(await outlet.pass()).toBe(0);
  });

  it("DA-10: dead letters stay in the store, where they can be listed and replayed; the stream is a copy without a length", async () => {
    await mg.enqueueMany(
      orders,
      Array.from({ length: 450 }, (_, i) => ({ payload: { n: 2 * i + 1 } })),
    );
    await until(async () => (await dead()) === 450);
    await using outlet = open();
    await until(async () => Number(await send("XLEN", STREAM)) === 450);
    expect(await outlet.pass()).toBe(0);
    expect(await dead()).toBe(450);
    expect(new Set((await published()).map(({ id }) => id)).size).toBe(450);
    for (const { id } of (await mg.store.list({ status: "dead", resolution: "open", limit: 1_000 })).data)
      await mg.resolve(id, { actor: "ada", reason: "done" });
  });

  it("DA-9: an answer that is lost after the write publishes nothing twice; a pass that dies is made again", async () => {
    await mg.enqueueMany(orders, [{ payload: { n: 1 } }, { payload: { n: 3 } }, { payload: { n: 5 } }]);
    await until(async () => (await dead()) === 3);
    let writes = 0;
    const lossy: RedisPort = {
      ...redis,
      async send(key, args, options) {
        const reply = await redis.send(key, args, options);
        if (/^\d+-\d+$/.test(String(reply)) && ++writes % 2 === 1) throw new MakegoodError("outcome_unknown", "no answer");
        return reply;
      },
    };
    const notices: OutletNotice[] = [];
    await using outlet = open({ redis: lossy, onNotice: (notice) => void notices.push(notice) });
    await until(async () => {
      outlet.nudge();
      return Number(await send("XLEN", STREAM)) === 3;
    });
    expect(notices.filter(({ what }) => what === "pass_failed").length).toBeGreaterThan(0);
    expect(await outlet.pass()).toBe(0);
    expect(await published()).toHaveLength(3);
    // Two at once do no harm either.
    await send("DEL", STREAM, `{${STREAM}}:published`);
    const both = await Promise.all([outlet, open()].map((one) => one.pass().catch(() => 0)));
    expect(both.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(3);
    await until(async () => (await outlet.pass().catch(() => 1)) === 0);
    expect(await published()).toHaveLength(3);
  });
});
