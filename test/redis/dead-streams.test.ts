/** `makegood streams`: dead letters of the recovery stream, replayed once, archived in the store, deleted only after that; what is refused is in the store, too. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createStreamFiles } from "../../src/archive/stream-files.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { RECOVERY_TOPIC } from "../../src/presets/index.ts";
import { EVALUATE_DEFINITION } from "../../src/recovery/topics.ts";
import { connectRedis, REFUSED_TOPIC, type RedisPort, trimDead } from "../../src/store/redis/index.ts";
import { terminal } from "../cli/terminal.ts";
import { startTestServer } from "../server/support.ts";
import { startableDist } from "../support/build.ts";
import { databaseUrl, dropSchema, freshSchema, openStore } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { freshPrefix } from "../support/redis-store.ts";

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
  expect((await run("replay", "recovery", "--dry-run")).value).toMatchObject({ selected: 3, replayed: 0, dry_run: true });
  expect((await run("replay", "recovery")).code).toBe(2);
  await run("archive", "recovery");
  expect((await run("replay", "recovery", first.id, "--yes")).value).toMatchObject({ replayed: 1, skipped: 0, errors: [] });
  expect((await run("replay", "recovery", first.id, "--yes")).value).toMatchObject({ replayed: 0, skipped: 1, errors: [] });
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
    selected: 2,
  });
  expect((await run("trim", "recovery", "--max-len", "1001", "--yes")).value).toMatchObject({
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

it("REC-30: every step has an address, and says what is not there", async () => {
  await store.topics.put(EVALUATE_DEFINITION, "api");
  // What is replayed waits: dead again it would be in the stream again.
  await store.topics.pause(RECOVERY_TOPIC, true);
  for (let n = 0; n < 4; n++) await refuse(n);
  const api = await startTestServer({ MAKEGOOD_STREAMS: "recovery", REDIS_URL: server.url }, { store });
  const post = async (step: string, body: object = {}) =>
    (await api.send("POST", `/api/v1/streams/recovery/${step}`, body)).json();
  const page = (await (await api.api("/api/v1/streams/recovery/entries?limit=3")).json()) as {
    data: [{ id: string }];
    next_cursor: string;
  };
  expect(page).toMatchObject({ stream: DEAD, total: 4, data: [{ kind: "refused", entry_id: "1-0" }, {}, {}] });
  const next = await (await api.api(`/api/v1/streams/recovery/entries?cursor=${page.next_cursor}`)).json();
  expect(next).toMatchObject({ data: [{ entry_id: "4-0" }], next_cursor: null });
  const [{ id }] = page.data;
  expect(await (await api.api(`/api/v1/streams/recovery/entries/${id}`)).json()).toMatchObject({
    fields: { candidate_id: "c-0" },
  });
  expect(await post("replay", { ids: [id], dry_run: true })).toMatchObject({ selected: 1, replayed: 0 });
  expect(await post("replay", { ids: [id] })).toMatchObject({ replayed: 1, errors: [] });
  expect(await post("archive")).toMatchObject({ length: 3, archived: 3, trimmed: 0 });
  expect(await post("trim", { max_len: 1 })).toMatchObject({ selected: 2, skipped: 2, trimmed: 2 });
  expect(await length()).toBe(1);
  const problems = [
    "GET /audit/entries",
    "GET /other/entries",
    "GET /recovery/entries/9-9",
    "GET /recovery/entries?cursor=x",
    "POST /audit/trim",
  ];
  const told = [];
  for (const [method, path] of problems.map((one) => one.split(" ") as [string, string])) {
    const answer = await api.api(
      `/api/v1/streams${path}`,
      method === "POST" ? { method, body: "{}", headers: { "content-type": "application/json" } } : {},
    );
    told.push([answer.status, ((await answer.json()) as { code: string }).code]);
  }
  const none = [404, "stream_not_found"];
  expect(told).toEqual([none, none, [404, "entry_not_found"], [400, "invalid_query"], none]);
  await api.close();
});

it("REC-50: where Redis is the store, entries are archived in sealed files, once, and read again", async () => {
  const folder = await mkdtemp(join(tmpdir(), "makegood-streams-"));
  const env = {
    MAKEGOOD_STORE: "redis",
    MAKEGOOD_STREAMS: "recovery",
    REDIS_URL: server.url,
    MAKEGOOD_REDIS_PREFIX: freshPrefix(),
  };
  const sealed = { ...env, MAKEGOOD_ARCHIVE: `file:${folder}`, MAKEGOOD_SEAL_KEY: "a secret of sixteen" };
  const on = async (...args: string[]) =>
    JSON.parse((await terminal(["streams", ...args, "--json", "--init"], { env: sealed })).stdout);
  for (let n = 0; n < 150; n++) await refuse(n);
  expect(await on("archive", "recovery")).toMatchObject({ archived: 150, skipped: 0, trimmed: 0 });
  for (let n = 150; n < 160; n++) await refuse(n);
  expect(await on("trim", "recovery", "--max-len", "5", "--yes")).toMatchObject({ archived: 5, skipped: 150, trimmed: 155 });
  expect(await length()).toBe(5);
  const files = (await readdir(folder)).sort();
  const lines: string[] = [];
  for (const file of files) {
    expect(await readFile(join(folder, file), "latin1")).not.toContain("c-0");
    const told = await terminal(["streams", "read", "recovery", join(folder, file)], { env: sealed });
    lines.push(...told.stdout.trimEnd().split("\n"));
  }
  expect(lines.map((line) => JSON.parse(line).fields.candidate_id)).toEqual(Array.from({ length: 155 }, (_, n) => `c-${n}`));
  const [first = ""] = files;
  const bytes = await readFile(join(folder, first));
  await writeFile(join(folder, first), bytes.subarray(0, bytes.length - 20));
  expect((await terminal(["streams", "read", "recovery", join(folder, first)], { env: sealed })).stderr).toMatch(
    /cannot be unpacked/,
  );
  await writeFile(join(folder, first), bytes);
  expect((await terminal(["streams", "read", "recovery", join(folder, first)], { env })).stderr).toMatch(
    /it is sealed: MAKEGOOD_SEAL_KEY/,
  );
  await rm(folder, { recursive: true });
});

describe("killed with SIGKILL before any of its calls, and made again", () => {
  const ENTRIES = 3;
  const SOAK = process.env.MAKEGOOD_SOAK === "1";
  let folder: string;
  const child = async (op: string, at: number, more: object = {}) => {
    const dist = await startableDist();
    const how = { dist, url: server.url, database: databaseUrl(), schema, op, at, stream: DEAD, lengthMax: 1, ...more };
    const run = spawn(process.execPath, [join(import.meta.dirname, "dead-stream-child.mjs"), JSON.stringify(how)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let out = "";
    run.stdout.on("data", (text) => {
      out += text;
    });
    const [, signal] = (await once(run, "close")) as [number | null, string | null];
    return signal === "SIGKILL" ? null : (JSON.parse(out) as { calls: number; errors: unknown[] });
  };
  /** Every call in turn with MAKEGOOD_SOAK=1, else the one in the middle of an entry and the last but one; then to its end. */
  const killed = async (op: string, steps: readonly number[], more: object = {}) => {
    let kills = 0;
    for (const at of SOAK ? Array.from({ length: 40 }, (_, i) => i + 1) : steps) {
      if ((await child(op, at, more)) !== null) break;
      kills++;
    }
    expect(kills).toBeGreaterThan(0);
    expect(await child(op, 0, more)).toMatchObject({ errors: [] });
  };

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "makegood-streams-"));
    await store.topics.put(EVALUATE_DEFINITION, "api");
    for (let n = 0; n < ENTRIES; n++) await refuse(n);
  });

  it("REC-39: a replay gives each entry one message, and leaves none behind", { timeout: 240_000 }, async () => {
    await child("archive", 0);
    // Before the archived one is resolved, and before the entry goes.
    await killed("replay", [4, 5]);
    expect([await length(), await countOf(RECOVERY_TOPIC)]).toEqual([0, ENTRIES]);
    const refused = (await store.list({ topic: REFUSED_TOPIC, limit: 10 })).data;
    expect(refused.map(({ resolution }) => resolution)).toEqual(Array(ENTRIES).fill("resolved"));
  });

  it("REC-50: archive and trim lose nothing and write nothing twice, in the store", { timeout: 240_000 }, async () => {
    // Before the second entry is written, and before the first two are deleted.
    await killed("trim", [6, 7]);
    const { data } = await store.list({ topic: REFUSED_TOPIC, limit: 10 });
    expect(data.map(({ payload }) => JSON.parse(payload).from_id).sort()).toEqual(["1-0", "2-0"]);
    expect(await length()).toBe(1);
  });

  it("REC-50: archive and trim lose nothing and write nothing twice, in files", { timeout: 240_000 }, async () => {
    // Before the file is written, and before what is in it is deleted.
    await killed("trim", [4, 5], { directory: folder });
    const files = createStreamFiles({
      directory: folder,
      name: "recovery",
      sealKey: "a secret of sixteen",
      random: systemRandom,
    });
    const texts = await Promise.all((await readdir(folder)).map((file) => files.read(file)));
    const ids = texts.flatMap((text) => text.trimEnd().split("\n")).map((line) => JSON.parse(line).entryId);
    expect([ids.sort(), await length()]).toEqual([["1-0", "2-0"], 1]);
  });
});
