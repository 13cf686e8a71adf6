/** `makegood streams`: dead letters of the recovery stream, replayed once, archived in the store, deleted only after that; what is refused is in the store, too. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { RECOVERY_TOPIC } from "../../src/presets/index.ts";
import { EVALUATE_DEFINITION } from "../../src/recovery/topics.ts";
import { connectRedis, REFUSED_TOPIC, type RedisPort, trimDead } from "../../src/store/redis/index.ts";
import { terminal } from "../cli/terminal.ts";
import { databaseUrl, dropSchema, freshSchema, openStore } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";

const DEAD = "m10:evaluate:dead-letter";
let server: RedisServer;
let redis: RedisPort;
let schema: string;
let store: Awaited<ReturnType<typeof openStore>>;
const schemas: string[] = [];
beforeAll(async () => {
  server = await startRedis();
  redis = await connectRedis(server.url);
});
beforeEach(async () => {
  await server.ask("FLUSHALL");
  schema = freshSchema();
  schemas.push(schema);
  store = await openStore({ schema });
});
afterAll(async () => {
  await redis.close();
  for (const one of schemas) await dropSchema(one);
});

const run = async (...args: string[]) => {
  const env = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema, MAKEGOOD_STREAMS: "recovery", REDIS_URL: server.url };
  const told = await terminal(["streams", ...args, "--json"], { env });
  return { code: told.code, stderr: told.stderr, value: told.stdout === "" ? null : JSON.parse(told.stdout) };
};
const refuse = (n: number) =>
  redis.send(DEAD, [
    "XADD",
    DEAD,
    "*",
    "dead_code",
    "reclaims_exhausted",
    "dead_reason",
    "it kills",
    "dead_stream",
    "m10:evaluate:stream",
    "dead_group",
    "g",
    "dead_id",
    `${n + 1}-0`,
    "dead_deliveries",
    "4",
    "candidate_id",
    `c-${n}`,
    "priority",
    "3",
  ]);
const length = async () => Number(await redis.send(DEAD, ["XLEN", DEAD]));
const countOf = async (topic: string) =>
  (await store.counts()).filter((one) => one.topic === topic).reduce((sum, { count }) => sum + count, 0);

it("REC-30, REC-39: entries are listed, and replayed once, however often it is asked", async () => {
  await store.topics.put(EVALUATE_DEFINITION, "api");
  for (let n = 0; n < 3; n++) await refuse(n);
  const { value } = await run("list", "recovery");
  expect(value).toMatchObject({ total: 3, data: [{ kind: "refused", code: "reclaims_exhausted", entry_id: "1-0" }, {}, {}] });
  const [first] = value.data;
  expect((await run("show", "recovery", first.id)).value).toMatchObject({ fields: { candidate_id: "c-0" } });
  expect((await run("replay", "recovery", "--dry-run")).value).toEqual({ would_replay: 3, dry_run: true });
  expect((await run("replay", "recovery")).code).toBe(2);
  await run("archive", "recovery");
  expect((await run("replay", "recovery", first.id, "--yes")).value).toEqual({ replayed: 1, skipped: 0, errors: [] });
  expect((await run("replay", "recovery", first.id, "--yes")).value).toEqual({ replayed: 0, skipped: 1, errors: [] });
  const [two, too] = await Promise.all([run("replay", "recovery", "--yes"), run("replay", "recovery", "--yes")]);
  expect([two.code, too.code]).toEqual([0, 0]);
  expect(await length()).toBe(0);
  expect(await countOf(RECOVERY_TOPIC)).toBe(3);
  expect((await store.list({ topic: REFUSED_TOPIC, resolution: "open", limit: 10 })).data).toEqual([]);
});

it("REC-50: trims only what is archived, beyond the length, and never more; row 1,001 too", async () => {
  for (let n = 0; n < 1_003; n++) await refuse(n);
  expect((await run("trim", "recovery", "--max-len", "1001", "--dry-run")).value).toMatchObject({
    length: 1_003,
    would_archive: 2,
  });
  expect((await run("trim", "recovery", "--max-len", "1001", "--yes")).value).toEqual({
    archived: 2,
    skipped: 0,
    trimmed: 2,
    errors: [],
  });
  expect([await length(), await countOf(REFUSED_TOPIC)]).toEqual([1_001, 2]);
  expect((await run("trim", "recovery", "--max-len", "1001", "--yes")).value).toMatchObject({ archived: 0, trimmed: 0 });
  const away = { ...store, enqueue: () => Promise.reject(new Error("the store is away")) };
  const parts = { redis, stream: DEAD, store: away, ids: createIds(systemClock), actor: "test" };
  const failed = await trimDead(parts, 996);
  expect([failed.removed, failed.errors.length, await length()]).toEqual([0, 5, 1_001]);
});

it("DA-15: what is archived is an open dead letter with all its fields, once", async () => {
  await refuse(0);
  expect((await run("archive", "recovery")).value).toMatchObject({ archived: 1, skipped: 0, trimmed: 0 });
  expect((await run("archive", "recovery")).value).toMatchObject({ archived: 0, skipped: 1 });
  const { data } = await store.list({ topic: REFUSED_TOPIC, limit: 10 });
  expect(data).toMatchObject([{ status: "dead", resolution: "open", lastCode: "reclaims_exhausted" }]);
  expect(JSON.parse(data[0]?.payload ?? "")).toMatchObject({ stream: DEAD, from_id: "1-0", fields: { candidate_id: "c-0" } });
});
