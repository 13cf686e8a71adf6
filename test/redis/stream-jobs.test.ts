/**
 * Chores of the streams, on a real Redis and a real PostgreSQL: consumers that died go, and nothing that they held (REC-54); the store and the
 * stream of dead letters are compared both ways (REC-38, DF-32).
 */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { createMakegood, type Makegood, reject, topic } from "../../src/index.ts";
import { createMetrics, type Levels } from "../../src/observe/metrics.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { RECOVERY_TOPIC } from "../../src/presets/index.ts";
import { streamJobs } from "../../src/presets/stream-jobs.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { connectRedis, REFUSED_TOPIC, type RedisPort } from "../../src/store/redis/index.ts";
import { removeDeadConsumers } from "../../src/store/redis/streams/upkeep.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";

const STREAM = "m10:evaluate:stream";
const GROUP = "m10:evaluate:group";
const DEAD = "m10:evaluate:dead-letter";
const plain = { log: "silent", recovery: false, topics: [topic(RECOVERY_TOPIC, { sink: () => reject("no") })] } as const;
let server: RedisServer;
let redis: RedisPort;
let mg: Makegood;
let metrics: ReturnType<typeof createMetrics>;
const UNKNOWN: Levels = { messages: null, breakers: null, ageMs: null, up: null };
const schema = freshSchema();
const ask = (key: string, ...args: string[]) => redis.send(key, args);

beforeAll(async () => {
  server = await startRedis();
  redis = await connectRedis(server.url);
  const store = createPostgresStore({ url: databaseUrl(), schema });
  const streams = { redis: server.url, audit: null, recovery: {}, consumerName: undefined };
  mg = await createMakegood({ ...plain, store, jobs: streamJobs(streams, store, systemClock, 1_000) });
  metrics = createMetrics({ events: mg.events, version: "0", levels: async () => UNKNOWN });
});
beforeEach(async () => {
  await server.ask("FLUSHALL");
  await ask(STREAM, "XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM");
});
afterAll(async () => {
  await mg.close();
  await redis.close();
  await dropSchema(schema);
});

const consumers = async () =>
  ((await redis.send(STREAM, ["XINFO", "CONSUMERS", STREAM, GROUP])) as unknown[][])
    .map((one) => Object.fromEntries(one.flatMap((name, i) => (i % 2 === 0 ? [[String(name), one[i + 1]]] : []))))
    .map(({ name, pending }) => [String(name), Number(pending)] as const)
    .sort(([a], [b]) => a.localeCompare(b));

it("REC-54: consumers that are silent for long go; what one of them held is claimed first, as idle and as often delivered as it was", async () => {
  for (const n of ["1", "2", "3"]) await ask(STREAM, "XADD", STREAM, "*", "n", n);
  const read = (consumer: string, count: string) =>
    redis.send(STREAM, ["XREADGROUP", "GROUP", GROUP, consumer, "COUNT", count, "STREAMS", STREAM, ">"]);
  await read("dead-holding", "2");
  await ask(STREAM, "XGROUP", "CREATECONSUMER", STREAM, GROUP, "dead-empty").catch(() => read("dead-empty", "1"));
  await read("alive", "1");
  const held = (await redis.send(STREAM, ["XPENDING", STREAM, GROUP, "-", "+", "10", "dead-holding"])) as unknown[][];
  expect(held).toHaveLength(2);
  // All of them were heard of a moment ago: nobody is dead yet.
  expect(await mg.jobs.run("clean-consumers")).toMatchObject({ result: "done", counts: { checked: 3, removed: 0, claimed: 0 } });
  const group = { redis, stream: STREAM, group: GROUP };
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  await ask(STREAM, "XADD", STREAM, "*", "n", "4");
  await read("alive", "1");
  const would = { checked: 3, would_remove: 2, would_claim: 2 };
  expect(await mg.jobs.run("clean-consumers", { dryRun: true })).toMatchObject({ counts: would });
  const [both] = await Promise.all([mg.jobs.run("clean-consumers"), removeDeadConsumers(group, 1_000)]);
  expect(both).toMatchObject({ result: "done", error: null });
  expect(await consumers()).toEqual([
    ["alive", 2],
    ["makegood-parked", 2],
  ]);
  const parked = (await redis.send(STREAM, ["XPENDING", STREAM, GROUP, "-", "+", "10", "makegood-parked"])) as unknown[][];
  expect(parked.map(([id, , , deliveries]) => [String(id), Number(deliveries)])).toEqual(held.map(([id]) => [String(id), 1]));
  for (const [i, [, , idle]] of parked.entries()) expect(Number(idle)).toBeGreaterThanOrEqual(Number(held[i]?.[2]));
  expect(await metrics.text()).toMatch(/^m10_reclaim_gc_checked_total [1-9]/m);
  // While it holds something it stays; then it goes like any other.
  expect((await removeDeadConsumers(group, 0)).removed).toBe(1);
  expect(await consumers()).toEqual([["makegood-parked", 4]]);
  for (const [id] of (await redis.send(STREAM, ["XPENDING", STREAM, GROUP, "-", "+", "10"])) as unknown[][])
    await ask(STREAM, "XACK", STREAM, GROUP, String(id));
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  expect(await mg.jobs.run("clean-consumers")).toMatchObject({ counts: { checked: 1, removed: 1 } });
  expect(await consumers()).toEqual([]);
  expect(await metrics.text()).toMatch(/^m10_reclaim_gc_cleaned_total [1-9]/m);
});

it("REC-38, DF-32: what is dead in one place only is brought to the other, and what is dead is no longer pending", async () => {
  const entry = String(await ask(STREAM, "XADD", STREAM, "*", "n", "1"));
  await redis.send(STREAM, ["XREADGROUP", "GROUP", GROUP, "c", "COUNT", "1", "STREAMS", STREAM, ">"]);
  // Of a version that copied first and acknowledged after.
  const refused = [
    "dead_code",
    "x",
    "dead_reason",
    "kills",
    "dead_stream",
    STREAM,
    "dead_group",
    GROUP,
    "dead_id",
    entry,
    "n",
    "1",
  ];
  await ask(DEAD, "XADD", DEAD, "*", ...refused);
  const { id } = await mg.enqueue(RECOVERY_TOPIC, { candidate_id: 1 });
  // One without these jobs.
  const worker = await createMakegood({ store: createPostgresStore({ url: databaseUrl(), schema }), ...plain });
  await worker.workOff();
  await worker.close();
  expect(await mg.store.get(id)).toMatchObject({ status: "dead" });
  await ask(DEAD, "XADD", DEAD, "*", "id", "00000000-0000-4000-8000-000000000000", "generation", "0", "last_code", "x");
  const would = { would_be_acknowledged: 1, would_be_archived: 1, would_be_missing: 1, would_be_published: 1 };
  expect(await mg.jobs.run("reconcile-streams", { dryRun: true })).toMatchObject({ counts: would });
  expect(await redis.send(DEAD, ["XLEN", DEAD])).toBe(2);
  const ran = await mg.jobs.run("reconcile-streams");
  expect(ran).toMatchObject({ result: "done", counts: { acknowledged: 1, archived: 1, missing: 1, published: 1 } });
  expect(ran.notes.join()).toMatch(/3 were not where.*1 are not in the store/);
  expect((await redis.send(STREAM, ["XPENDING", STREAM, GROUP, "-", "+", "10"])) as unknown[]).toEqual([]);
  expect((await mg.store.list({ topic: REFUSED_TOPIC, status: "dead", limit: 10 })).data).toHaveLength(1);
  expect(await redis.send(DEAD, ["XLEN", DEAD])).toBe(3);
  const again = await mg.jobs.run("reconcile-streams");
  expect(again).toMatchObject({ counts: { acknowledged: 0, archived: 0, published: 0 }, more: false });
  expect(await redis.send(DEAD, ["XLEN", DEAD])).toBe(3);
});
