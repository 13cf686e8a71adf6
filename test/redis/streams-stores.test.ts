/**
 * Inlet and outlet in front of every store, through both clients: one suite, the same promises. The Redis store keeps its messages in the
 * same server as the streams, as a service with one Redis has it.
 */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createMakegood, createMemoryStore, type Makegood, MakegoodError, reject, retry, topic } from "../../src/index.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { fromIoredis, fromNodeRedis, type RedisPort } from "../../src/store/redis/port.ts";
import { createRedisStore } from "../../src/store/redis/redis-store.ts";
import { type Inlet, startInlet } from "../../src/store/redis/streams/inlet.ts";
import type { InletNotice, InletOptions } from "../../src/store/redis/streams/inlet-options.ts";
import { type OutletNotice, type OutletOptions, startOutlet } from "../../src/store/redis/streams/outlet.ts";
import { fieldOf } from "../../src/store/redis/streams/seed-names.ts";
import type { Store } from "../../src/store/store.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { freshPrefix } from "../support/redis-store.ts";

const CLIENTS = {
  "node-redis": (url: string) => fromNodeRedis(createClient({ url })),
  ioredis: (url: string) => fromIoredis(new Redis(url, { lazyConnect: true })),
};

type Opened = { readonly store: Store; drop(): Promise<unknown> };
const STORES: Record<string, (redis: RedisPort) => Opened> = {
  memory: () => ({ store: createMemoryStore(), drop: async () => {} }),
  postgres() {
    const schema = freshSchema();
    return { store: createPostgresStore({ url: databaseUrl(), schema }), drop: () => dropSchema(schema) };
  },
  redis: (redis) => ({ store: createRedisStore({ redis, prefix: freshPrefix() }), drop: async () => {} }),
};

const COMBINATIONS = Object.keys(STORES).flatMap((store) =>
  (Object.keys(CLIENTS) as (keyof typeof CLIENTS)[]).map((client) => ({ store, client })),
);

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

const orders = topic<{ n: number }>("a/orders", {
  retry: { attemptsMax: 2, baseMs: 1, maxMs: 2 },
  sink: ({ n }) => (n % 2 === 0 ? retry("busy", { code: "http_503" }) : reject("no such order", { code: "http_422" })),
});
const others = topic("a/others", { sink: () => reject("never", { code: "http_410" }) });
const arrived: string[] = [];
const plain = topic("a/plain", { sink: (_, { payload }) => void arrived.push(payload) });

let made = 0;

describe.each(COMBINATIONS)("the store $store behind $client", ({ store: storeName, client }) => {
  let redis: RedisPort;
  let mg: Makegood;
  let drop: Opened["drop"];
  let stream: string;
  const inlets: Inlet[] = [];
  const send = (...args: string[]) => redis.send(null, args);
  const fresh = (): string => `orders-${++made}`;
  const add = (body: string, more: Record<string, string> = {}): Promise<string> =>
    send("XADD", stream, "*", ...Object.entries({ body, ...more }).flat()) as Promise<string>;
  const length = async (name = stream): Promise<number> => Number(await send("XLEN", name));
  const emptied = () => until("the stream is empty", async () => (await length()) === 0);
  const entriesOf = async (name: string): Promise<Record<string, string>[]> =>
    ((await send("XRANGE", name, "-", "+")) as [string, string[]][]).map(([, flat]) =>
      Object.fromEntries(flat.flatMap((one, i) => (i % 2 === 0 ? [[one, flat[i + 1] as string]] : []))),
    );
  const byKey = async (key: string) => (await mg.store.list({ key, limit: 10 })).data;
  const open = async () => (await mg.store.list({ status: "dead", resolution: "open", limit: 1_000 })).data;
  const dead = (count: number) => until(`${count} dead letters`, async () => (await open()).length === count);

  function inlet(over: Partial<InletOptions> = {}): InletNotice[] {
    const notices: InletNotice[] = [];
    const started = startInlet({
      ...{ redis, stream, group: "workers", blockMs: 50, sweepMs: 50 },
      read: (entry) => ({ topic: "a/plain", payloadText: fieldOf(entry, "body") }),
      accept: (messages, signal) => mg.enqueueText(messages, { signal }),
      onNotice: (notice) => void notices.push(notice),
      ...over,
    });
    inlets.push(started);
    return notices;
  }
  /** Passes only when the test asks for one, and once at its start. */
  const outlet = (over: Partial<OutletOptions> = {}) =>
    startOutlet({ redis, store: mg.store, stream: `${stream}:dead`, everyMs: 3_600_000, ...over });

  beforeAll(async () => {
    redis = CLIENTS[client](server.url);
    const opened = (STORES[storeName] as (typeof STORES)[string])(redis);
    drop = opened.drop;
    mg = await createMakegood({ store: opened.store, topics: [orders, others, plain], pollMs: 10 });
    mg.work();
    stream = fresh();
  });
  afterEach(async () => {
    for (const one of inlets.splice(0)) await one.stop({ timeoutMs: 1_000 });
    await Promise.all((await open()).map(({ id }) => mg.discard(id, { actor: "test", reason: "over" })));
    stream = fresh();
    arrived.length = 0;
  });
  afterAll(async () => {
    await mg.close();
    await redis.close();
    await drop();
  });

  it("every entry is delivered byte for byte, and nothing stays in the stream", async () => {
    const bodies = Array.from({ length: 60 }, (_, n) => `{"n" : ${n}.0, "n":${n}}`);
    for (const body of bodies) await add(body);
    inlet();
    await emptied();
    await until("all have arrived", () => arrived.length === bodies.length);
    expect([...arrived].sort()).toEqual([...bodies].sort());
    expect(await send("XPENDING", stream, "workers")).toEqual([0, null, null, null]);
  });

  it("DA-5, DA-6: what is not due waits in the store, not in a pending list, and its attempts are counted there", async () => {
    const id = await add('{"n" : 1.0}', { retry_count: "4" });
    inlet({ read: (entry) => ({ topic: "a/plain", payloadText: fieldOf(entry, "body"), delayMs: 3_600_000 }) });
    await emptied();
    expect(await send("XPENDING", stream, "workers")).toEqual([0, null, null, null]);
    expect(await byKey(`${stream}:${id}`)).toMatchObject([{ status: "pending", attempts: 0, payload: '{"n" : 1.0}' }]);
  });

  it("hands an entry over twice and it is one message: the key is made of stream and id", async () => {
    const ids = [await add("1"), await add("2"), await add("3")];
    let lostAnswers = 2;
    const notices = inlet({
      async accept(messages) {
        await mg.enqueueText(messages);
        if (lostAnswers-- > 0) throw new MakegoodError("outcome_unknown", "the answer was lost");
      },
    });
    await emptied();
    expect(notices.filter(({ what }) => what === "accept_failed")).toHaveLength(2);
    await until("all have arrived", () => arrived.length === 3);
    for (const id of ids) expect(await byKey(`${stream}:${id}`)).toHaveLength(1);
    expect([...arrived].sort()).toEqual(["1", "2", "3"]);
  });

  it("DA-15: what the store refuses for good is quarantined whole with its code, and its batch goes on", async () => {
    await add("1", { key: `${stream}-a` });
    const second = await add("2", { key: `${stream}-a` });
    await add("{half");
    await add("4", { key: `${stream}-b` });
    const notices = inlet({
      read: (entry) => ({ topic: "a/plain", payloadText: fieldOf(entry, "body"), key: entry.fields.key }),
      deadStream: `${stream}:dead`,
    });
    await emptied();
    expect(await entriesOf(`${stream}:dead`)).toMatchObject([
      { dead_code: "key_conflict", dead_id: second, dead_stream: stream, body: "2" },
      { dead_code: "invalid_payload", body: "{half" },
    ]);
    expect(notices.filter(({ what }) => what === "quarantined")).toHaveLength(2);
    await until("all have arrived", () => arrived.length === 2);
    expect([...arrived].sort()).toEqual(["1", "4"]);
  });

  it("DA-8: publishes the full record with its error history, once, and again when it dies again", async () => {
    const { id } = await mg.enqueue(orders, { n: 0 }, { key: `${stream}-0`, tenantId: "t" });
    await dead(1);
    await using one = outlet();
    await until("published", async () => (await length(`${stream}:dead`)) === 1);
    expect(await one.pass()).toBe(0);
    const [record] = await entriesOf(`${stream}:dead`);
    expect(record).toMatchObject({
      ...{ id, topic: "a/orders", key: `${stream}-0`, tenant_id: "t", payload: '{"n":0}' },
      ...{ attempts: "2", last_code: "http_503", last_error: "busy" },
    });
    expect(JSON.parse(record?.history as string)).toMatchObject([
      { attempt: 1, outcome: "retry", code: "http_503", error: "busy" },
      { attempt: 2, outcome: "retry", code: "http_503", error: "busy" },
    ]);
    await mg.replay(id, { actor: "ada", reason: "try again" });
    await dead(1);
    expect(await one.pass()).toBe(1);
    const [, second] = await entriesOf(`${stream}:dead`);
    expect(JSON.parse(second?.provenance as string)).toMatchObject([{ actor: "ada", action: "replay", reason: "try again" }]);
    expect(second?.attempts).toBe("4");
    await mg.discard(id, { actor: "ada", reason: "enough" });
    await send("DEL", `${stream}:dead`, `{${stream}:dead}:published`);
    expect(await one.pass()).toBe(0);
  });

  it("DA-10: dead letters stay in the store, where they can be listed and replayed; the stream is a copy without a length", async () => {
    const count = 205;
    await mg.enqueueMany(
      orders,
      Array.from({ length: count }, (_, i) => ({ payload: { n: 2 * i + 1 } })),
    );
    await dead(count);
    await using one = outlet();
    await until("published", async () => (await length(`${stream}:dead`)) === count);
    expect(await one.pass()).toBe(0);
    expect(new Set((await entriesOf(`${stream}:dead`)).map(({ id }) => id))).toEqual(new Set((await open()).map(({ id }) => id)));
  });

  it("publishes the topics it was told to, and no other", async () => {
    await mg.enqueue(orders, { n: 1 });
    const { id } = await mg.enqueue(others, {});
    await dead(2);
    await using some = outlet({ topics: ["a/plain", "a/others"] });
    await until("published", async () => (await length(`${stream}:dead`)) === 1);
    expect(await some.pass()).toBe(0);
    expect(await entriesOf(`${stream}:dead`)).toMatchObject([{ id, topic: "a/others" }]);
  });

  it("DA-9: an answer that is lost after the write publishes nothing twice; a pass that dies is made again", async () => {
    await mg.enqueueMany(orders, [{ payload: { n: 1 } }, { payload: { n: 3 } }, { payload: { n: 5 } }]);
    await dead(3);
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
    await using one = outlet({ redis: lossy, onNotice: (notice) => void notices.push(notice) });
    await until("published", async () => {
      one.nudge();
      return (await length(`${stream}:dead`)) === 3;
    });
    expect(notices.filter(({ what }) => what === "pass_failed").length).toBeGreaterThan(0);
    expect(await one.pass()).toBe(0);
    expect(await length(`${stream}:dead`)).toBe(3);
  });

  it("two outlets at once publish each dead letter once between them", async () => {
    await mg.enqueueMany(
      orders,
      Array.from({ length: 20 }, (_, i) => ({ payload: { n: 2 * i + 1 } })),
    );
    await dead(20);
    const published: string[] = [];
    const onNotice = (notice: OutletNotice): void => {
      if (notice.what === "published") published.push(notice.id);
    };
    await using one = outlet({ onNotice });
    await using two = outlet({ onNotice });
    await until("published", () => published.length >= 20);
    expect([await one.pass(), await two.pass()]).toEqual([0, 0]);
    expect(published).toHaveLength(20);
    expect(new Set(published)).toEqual(new Set((await open()).map(({ id }) => id)));
    expect(await length(`${stream}:dead`)).toBe(20);
  });
});
