/**
 * `serve` and `work` as processes that start while their store is away: they live, say so, take what they can, and begin by themselves
 * when the store comes. What is wrong with the configuration ends the start at once.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { createRedisStore } from "../../src/store/redis/index.ts";
import { envelope } from "../audit/records.ts";
import { newMessage } from "../faults/scene.ts";
import { databaseUrl, dropSchema, freshSchema, openStore, refusedUrl, withClient } from "../support/postgres.ts";
import { type Process, startCli, until, workspace } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { startRedis } from "../support/redis-server.ts";
import { startProxy, targetOf } from "../support/tcp-proxy.ts";

vi.setConfig({ testTimeout: 60_000 });

const schemas: string[] = [];
afterAll(async () => {
  for (const schema of schemas) await dropSchema(schema);
});

const TOPIC = "away/at-start";

async function configured(url: string): Promise<string> {
  const cwd = await workspace();
  const retry = { policy: "exponential", attempts_max: 20, base_ms: 50, max_ms: 500 };
  const topics = { [TOPIC]: { sink: { kind: "http", url, timeout_ms: 2_000 }, retry } };
  await writeFile(join(cwd, "makegood.config.json"), JSON.stringify({ topics }));
  return cwd;
}

async function baseOf(server: Process): Promise<string> {
  return String((await server.fact(({ message }) => message === "listening")).url);
}

const post = (base: string, key: string) =>
  fetch(`${base}/api/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ topic: TOPIC, key, payload: { key } }),
  });

describe("serve", () => {
  it("PostgreSQL is away at the start: alive, not ready, 503; then topics are declared, and it accepts and delivers", async () => {
    await using receiver = await startReceiver();
    await using proxy = await startProxy(targetOf(databaseUrl()));
    proxy.refuse();
    const schema = freshSchema();
    schemas.push(schema);
    const env = { DATABASE_URL: proxy.via(databaseUrl()), MAKEGOOD_SCHEMA: schema, MAKEGOOD_PORT: "0", MAKEGOOD_POLL_MS: "100" };
    const server = await startCli(["serve"], env, await configured(receiver.url));
    const base = await baseOf(server);
    const said = server.facts.filter(({ message }) => message === "store away, retrying");
    expect(said).toMatchObject([{ level: "warn", store: expect.stringContaining("postgres") }]);
    expect(JSON.stringify(said)).not.toContain(new URL(databaseUrl()).password);

    expect((await fetch(`${base}/livez`)).status).toBe(200);
    const ready = await fetch(`${base}/readyz`);
    expect([ready.status, ready.headers.get("retry-after")]).toEqual([503, "2"]);
    expect(await ready.json()).toMatchObject({ code: "not_ready", detail: expect.stringContaining("store: postgres") });
    const refused = await post(base, "early");
    expect([refused.status, refused.headers.get("content-type"), refused.headers.get("retry-after")]).toEqual([
      503,
      "application/problem+json",
      "2",
    ]);
    expect(await refused.json()).toMatchObject({ code: "store_unavailable" });

    proxy.heal();
    await until("it is ready", async () => (await fetch(`${base}/readyz`)).status === 200);
    // Ready means that the file's topics are there, too.
    expect((await post(base, "late")).status).toBe(201);
    await until("it delivers", () => receiver.effects.has("late"));
    expect(receiver.effects.has("early")).toBe(false);
    expect(await server.end("SIGTERM")).toEqual({ code: 0, signal: null });
    expect(server.stderr()).toBe("");
  });

  it("PostgreSQL is there and takes long to open: alive and not ready after five seconds, ready when it is open", async () => {
    await using receiver = await startReceiver();
    await using proxy = await startProxy(targetOf(databaseUrl()));
    proxy.latency(600);
    const schema = freshSchema();
    schemas.push(schema);
    const env = { DATABASE_URL: proxy.via(databaseUrl()), MAKEGOOD_SCHEMA: schema, MAKEGOOD_PORT: "0" };
    const server = await startCli(["serve"], env, await configured(receiver.url));
    const base = await baseOf(server);
    const said = server.facts.filter(({ message }) => message === "store away, retrying");
    expect(said).toMatchObject([{ error: expect.stringContaining("not open after 5000 ms") }]);
    const [ready, accepted] = await Promise.all([fetch(`${base}/readyz`), post(base, "early")]);
    expect([ready.status, accepted.status]).toEqual([503, 503]);
    proxy.latency(0);
    await until("it is ready", async () => (await fetch(`${base}/readyz`)).status === 200);
    expect((await post(base, "late")).status).toBe(201);
    expect(await server.end("SIGTERM")).toEqual({ code: 0, signal: null });
  });

  it("Redis is away at the start, as a real server that is not there; what waits in it is delivered when it comes", async () => {
    await using receiver = await startReceiver();
    const redis = await startRedis();
    const prefix = "away";
    const env = { MAKEGOOD_STORE: "redis", REDIS_URL: redis.url, MAKEGOOD_REDIS_PREFIX: prefix, MAKEGOOD_PORT: "0" };
    await redis.stop("SIGKILL");
    const server = await startCli(["serve"], env, await configured(receiver.url));
    const base = await baseOf(server);
    expect((await fetch(`${base}/livez`)).status).toBe(200);
    expect(await (await fetch(`${base}/readyz`)).json()).toMatchObject({ detail: expect.stringContaining("store: redis") });
    expect((await post(base, "early")).status).toBe(503);
    await redis.start();
    await until("it is ready", async () => (await fetch(`${base}/readyz`)).status === 200);
    expect((await post(base, "late")).status).toBe(201);
    await until("it delivers", () => receiver.effects.has("late"));
    expect(await server.end("SIGTERM")).toEqual({ code: 0, signal: null });
    const store = createRedisStore({ redis: redis.url, prefix });
    await store.open();
    expect((await store.topics.get(TOPIC))?.source).toBe("file");
    await store.close();
    await redis.stop();
  });

  it("a store that comes and cannot be used ends the process with the reason", async () => {
    await using receiver = await startReceiver();
    const redis = await startRedis();
    await redis.stop();
    const env = { MAKEGOOD_STORE: "redis", REDIS_URL: redis.url, MAKEGOOD_PORT: "0" };
    const server = await startCli(["serve"], env, await configured(receiver.url));
    await baseOf(server);
    await redis.start(["--appendonly", "yes", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    expect(await server.ended).toMatchObject({ code: 1 });
    expect(server.stderr()).toContain("maxmemory-policy allkeys-lru");
    await redis.stop();
  });

  it("what is wrong is said at once: a password that is refused, a database that is not there, a URL that is none", async () => {
    await using receiver = await startReceiver();
    const cwd = await configured(receiver.url);
    const wrong = (change: (url: URL) => void) => {
      const url = new URL(databaseUrl());
      change(url);
      return url.href;
    };
    const ends = async (url: string) => {
      const server = await startCli(["serve"], { DATABASE_URL: url, MAKEGOOD_PORT: "0" }, cwd);
      const { code } = await server.ended;
      return { code, stderr: server.stderr() };
    };
    const [password, database, nonsense] = await Promise.all([
      ends(refusedUrl()),
      ends(wrong((url) => Object.assign(url, { pathname: "/nobody_made_it" }))),
      ends("mysql://127.0.0.1/x"),
    ]);
    expect(password).toMatchObject({ code: 1, stderr: expect.stringContaining("password authentication failed") });
    expect(database).toMatchObject({ code: 1, stderr: expect.stringContaining("nobody_made_it") });
    expect(nonsense.code).toBe(2);
  });

  it("with a journal below, an audit record is taken while PostgreSQL is away, and PostgreSQL has it when it comes", async () => {
    await using proxy = await startProxy(targetOf(databaseUrl()));
    proxy.refuse();
    const schema = freshSchema();
    schemas.push(schema);
    const cwd = await workspace();
    const env = {
      DATABASE_URL: proxy.via(databaseUrl()),
      MAKEGOOD_SCHEMA: schema,
      MAKEGOOD_PORT: "0",
      MAKEGOOD_JOURNAL_DIR: join(cwd, "journal"),
    };
    const server = await startCli(["serve"], env, cwd);
    const base = await baseOf(server);
    const answer = await fetch(`${base}/api/v1/audit/executions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(envelope("e-away")),
    });
    expect([answer.status, await answer.json()]).toMatchObject([202, { status: "queued", survives: "power-loss" }]);
    proxy.heal();
    // Its next attempt is a minute away, on the policy of audit records.
    await until("the record has moved up", async () => {
      const asked = withClient((client) => client.query(`select 1 from "${schema}".message where key = 'e-away'`));
      const rows = await asked.then(
        (found) => found.rows,
        () => [],
      );
      return rows.length === 1;
    });
    expect(await server.end("SIGTERM")).toEqual({ code: 0, signal: null });
  });
});

describe("work", () => {
  it("starts while the store is away and works when it comes", async () => {
    await using receiver = await startReceiver();
    await using proxy = await startProxy(targetOf(databaseUrl()));
    const store = await openStore();
    schemas.push(store.schema);
    proxy.refuse();
    const env = { DATABASE_URL: proxy.via(databaseUrl()), MAKEGOOD_SCHEMA: store.schema, MAKEGOOD_POLL_MS: "100" };
    const worker = await startCli(["work"], env, await configured(receiver.url));
    await worker.fact(({ message }) => message === "working");
    expect(worker.facts.filter(({ message }) => message === "store away, retrying")).toHaveLength(1);
    expect(await store.topics.get(TOPIC)).toBeNull();
    proxy.heal();
    await until("its topics are declared", async () => (await store.topics.get(TOPIC)) !== null);
    await store.enqueue([newMessage(TOPIC, "k")]);
    await until("it delivers", () => receiver.arrivals.length === 1);
    expect(await worker.end("SIGTERM")).toEqual({ code: 0, signal: null });
    await store.close();
  });
});
