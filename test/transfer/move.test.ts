/**
 * `makegood export` and `import`: a store in a file and back, between engines. A file that is not whole is refused before anything is written; what
 * is killed on the way is run again; nothing comes twice.
 */
import { randomBytes } from "node:crypto";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { conservationOf } from "../../src/store/conservation.ts";
import { movableOf } from "../../src/store/movable.ts";
import type { Store } from "../../src/store/store.ts";
import { everything } from "../../src/testing/movable-conformance.ts";
import { definition, newMessage, PLAIN } from "../../src/testing/store-conformance/fixtures.ts";
import { play, verbs } from "../../src/testing/store-conformance/scene.ts";
import { exportStore } from "../../src/transfer/export-store.ts";
import { importFile } from "../../src/transfer/import-file.ts";
import { makegood, removeWorkspaces, running, workspace } from "../cli/support.ts";
import { terminal } from "../cli/terminal.ts";
import { postgresHarness } from "../conformance/postgres-harness.ts";
import { databaseUrl, dropSchema, freshSchema, openStore } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { freshPrefix, openRedisStore } from "../support/redis-store.ts";

let redis: RedisServer;
let folder: string;
const schemas: string[] = [];
beforeAll(async () => {
  [redis, folder] = await Promise.all([startRedis(), workspace()]);
});
afterAll(async () => {
  for (const schema of schemas) await dropSchema(schema);
  await removeWorkspaces();
});

const fresh = (): string => join(folder, `${randomBytes(4).toString("hex")}.ndjson`);
const onRedis = () => openRedisStore({ redis: redis.url, prefix: freshPrefix() });
const onPostgres = async () => {
  const store = await openStore();
  schemas.push(store.schema);
  return store;
};
const write = (store: Store, path: string, live = false) =>
  exportStore({ store, path, clock: systemClock, all: true, live, secrets: false, unreadable: 0 });
const read = (store: Store, path: string) => importFile({ store, path, dryRun: false });

/** A store with so many pending messages, every tenth with a key. */
async function filled(store: Store, count: number): Promise<string[]> {
  await store.topics.put(definition(PLAIN), "api");
  const { id } = verbs(store);
  const messages = Array.from({ length: count }, (_, i) =>
    newMessage(id(), { key: i % 10 === 0 ? `k-${i}` : null, tenantId: `t-${i % 3}` }),
  );
  for (let from = 0; from < count; from += 500) await store.enqueue(messages.slice(from, from + 500));
  return messages.map((one) => one.id);
}

describe("a store in a file", () => {
  it("DF-29: PostgreSQL → Redis → PostgreSQL holds the same messages, each as it stood", () =>
    play(postgresHarness(), async (scene) => {
      await everything(scene);
      const paths = [fresh(), fresh(), fresh()] as const;
      const first = await write(scene.store, paths[0], true);
      expect(first).toMatchObject({ messages: 13, topics: 4, inFlight: 1 });
      const [middle, last] = [await onRedis(), await onPostgres()];
      const there = await read(middle, paths[0]);
      expect(there).toMatchObject({
        put: 13,
        whole: true,
        hash: first.hash,
        compared: { same: 13, hash: first.hash, sums: first.sums },
      });
      const second = await write(middle, paths[1]);
      expect(second).toMatchObject({ messages: 13, hash: first.hash, sums: first.sums });
      const kept = conservationOf(last);
      await kept?.pass({ reach: "full" });
      expect(await read(last, paths[1])).toMatchObject({ put: 13, whole: true, compared: { same: 13, sums: first.sums } });
      await write(last, paths[2]);
      const lines = async (path: string) =>
        (await readFile(path, "utf8")).split("\n").filter((line) => line.startsWith('{"message"'));
      const [before, ...after] = await Promise.all(paths.map(async (path) => (await lines(path)).sort()));
      expect(after).toEqual([before, before]);
      // What came is accepted there, settled or not, and nothing of it is missing.
      await kept?.pass({ reach: "full" });
      const report = await kept?.conclude({});
      expect(report).toMatchObject({ state: "whole", totals: { accepted: 13, live: 10 } });
      await middle.close();
      await last.close();
    }));

  it("is refused when it is cut off, changed or goes on, before anything is written", async () => {
    const [source, target] = [await onRedis(), await onPostgres()];
    const path = fresh();
    await filled(source, 30);
    await write(source, path);
    const bytes = await readFile(path);
    const lines = bytes.toString("utf8").split("\n");
    const middle = bytes.indexOf("t-1");
    const flipped = Buffer.from(bytes);
    flipped[middle] = "x".charCodeAt(0);
    const swapped = [lines[0], lines[1], lines[3], lines[2], ...lines.slice(4)].join("\n");
    const broken = [
      bytes.subarray(0, bytes.length - 1),
      bytes.subarray(0, bytes.length >> 1),
      Buffer.from(`${lines.slice(0, -2).join("\n")}\n`),
      flipped,
      Buffer.from(swapped),
      Buffer.concat([bytes, Buffer.from("{}\n")]),
      Buffer.from(bytes.toString("utf8").replace('"makegood_export":2', '"makegood_export":3')),
      Buffer.alloc(0),
    ];
    for (const [i, text] of broken.entries()) {
      await writeFile(path, text);
      await expect(read(target, path), `file ${i}`).rejects.toMatchObject({ code: "invalid_request" });
    }
    expect(await target.topics.list()).toEqual([]);
    expect(await target.counts({ delivered: true })).toEqual([]);
    await source.close();
    await target.close();
  });

  it("is not written while a worker is at work, and says so; paused and idle it is", async () => {
    const store = await onPostgres();
    await filled(store, 3);
    await store.topics.announce({ owner: "worker-1", patterns: ["*"], functions: null, unserved: [] }, 60_000);
    const path = fresh();
    await expect(write(store, path)).rejects.toThrow(/1 worker is at work \(worker-1\).*delivered twice.*--live/);
    await expect(stat(path)).rejects.toThrow();
    expect(await write(store, fresh(), true)).toMatchObject({ messages: 3 });
    await store.topics.pause(PLAIN, true);
    expect(await write(store, path)).toMatchObject({ messages: 3 });
    const target = await onPostgres();
    expect((await read(target, path)).topics).toMatchObject({ made: [PLAIN], paused: [PLAIN] });
    await store.close();
    await target.close();
  });

  it("has no secrets unless they are asked for; a topic that misses one is made paused", async () => {
    const [source, target] = [await onPostgres(), await onRedis()];
    const sink = {
      kind: "webhook",
      url: "https://a.test/",
      secrets: ["whsec_c2VjcmV0"],
      headers: { authorization: "Bearer s3cret", "x-a": "1" },
    };
    await source.topics.put({ ...definition("a/b"), sink }, "api");
    const path = fresh();
    const { missing } = await write(source, path);
    expect(missing).toEqual({ "a/b": ["sink.secrets", "sink.headers.authorization"] });
    expect(await readFile(path, "utf8")).not.toMatch(/s3cret|c2VjcmV0/);
    expect((await read(target, path)).topics).toMatchObject({ made: ["a/b"], paused: ["a/b"], missing });
    expect(await target.topics.get("a/b")).toMatchObject({ paused: true, sink: { headers: { "x-a": "1" } } });
    await source.close();
    await target.close();
  });

  it("leaves what contradicts it as it is, and names both", async () => {
    const [source, target] = [await onRedis(), await onPostgres()];
    const [, , third] = await filled(source, 12);
    const path = fresh();
    await write(source, path);
    await target.topics.put(definition(PLAIN), "api");
    const other = newMessage(verbs(target).id(), { key: "k-0", tenantId: "t-0", payload: '"another"' });
    await target.enqueue([other]);
    const done = await read(target, path);
    expect(done).toMatchObject({ put: 11, conflict: 1, whole: false, compared: { same: 11, absent: 0 } });
    expect(done.contradictions).toMatchObject([{ there: other.id }]);
    expect(await target.get(third as string)).not.toBeNull();
    await source.close();
    await target.close();
  });
});

describe("the commands", () => {
  it("export and import 1,201 messages from Redis to PostgreSQL; again changes nothing", async () => {
    const prefix = freshPrefix();
    const source = await openRedisStore({ redis: redis.url, prefix });
    const ids = await filled(source, 1_201);
    await source.close();
    const env = { MAKEGOOD_STORE: "redis", REDIS_URL: redis.url, MAKEGOOD_REDIS_PREFIX: prefix };
    const path = fresh();
    const dry = await terminal(["export", path, "--dry-run", "--json"], { env });
    expect(JSON.parse(dry.stdout)).toMatchObject({ messages: 1_201, at_work: null, dry_run: true });
    const out = await terminal(["export", path, "--json"], { env });
    expect([out.code, JSON.parse(out.stdout)]).toMatchObject([0, { messages: 1_201, topics: 1, path, live: false }]);
    expect((await terminal(["export", path], { env })).stderr).toContain("is there already");
    const schema = freshSchema();
    schemas.push(schema);
    const to = { env: { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema } };
    const first = await terminal(["import", path], to);
    expect([first.code, first.stdout]).toEqual([
      0,
      expect.stringContaining("compared: 1201 the same, 0 moved on since, 0 absent, 0 wrong"),
    ]);
    const second = JSON.parse((await terminal(["import", path, "--json"], to)).stdout);
    expect(second).toMatchObject({
      put: 0,
      present: 1_201,
      whole: true,
      compared: { same: 1_201, hash: JSON.parse(out.stdout).hash },
    });
    const store = await openStore({ schema });
    expect((await movableOf(store)?.find(ids))?.length).toBe(1_201);
    await store.close();
    expect((await terminal(["import", "--json"], to)).code).toBe(2);
  });

  it("an import that is killed again and again ends with each message once", async () => {
    const source = await onRedis();
    const ids = await filled(source, 1_500);
    const path = fresh();
    const { hash } = await write(source, path);
    await source.close();
    const schema = freshSchema();
    schemas.push(schema);
    const env = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema };
    await (await openStore({ schema })).close();
    for (const ms of [700, 1_200]) {
      const run = await running(folder, ["import", path, "--json"], env);
      await new Promise((resolve) => setTimeout(resolve, ms));
      await run.stop("SIGKILL");
    }
    const end = await makegood(folder, ["import", path, "--json"], env);
    expect([end.code, JSON.parse(end.stdout)]).toMatchObject([
      0,
      { messages: 1_500, whole: true, compared: { same: 1_500, hash } },
    ]);
    const store = await openStore({ schema });
    const counts = await store.counts({ delivered: true });
    expect(counts.map(({ status, count }) => [status, count])).toEqual([["pending", ids.length]]);
    await store.close();
  });

  it("an export that is killed leaves no file under its name", async () => {
    const source = await onPostgres();
    await filled(source, 2_000);
    await source.close();
    const env = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: source.schema };
    const path = fresh();
    const run = await running(folder, ["export", path], env);
    const until = Date.now() + 20_000;
    // The first moment at which it has begun to write.
    while (Date.now() < until && !(await stat(`${path}.part`).catch(() => null)))
      await new Promise((resolve) => setTimeout(resolve, 1));
    await run.stop("SIGKILL");
    if (await stat(path).catch(() => null)) await rm(path);
    else await expect(importFile({ store: source, path: `${path}.part`, dryRun: true })).rejects.toThrow();
    expect((await makegood(folder, ["export", path], env)).code).toBe(0);
  });
});
