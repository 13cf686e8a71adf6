/**
 * A server on Redis: without a DATABASE_URL recovery answers 501, with one it works beside Redis, and says where it is and how it stands. A
 * PostgreSQL that is away keeps the server neither from starting nor from accepting.
 */
import { afterEach, describe, expect, it, vi } from "vitest";
import { createLog } from "../../src/observe/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { type RunningServer, startServer } from "../../src/server/serve.ts";
import { freePort } from "../support/free-port.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { freshPrefix } from "../support/redis-store.ts";
import { configOf } from "./support.ts";

vi.setConfig({ testTimeout: 60_000 });
let redis: Promise<RedisServer> | undefined;
const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

async function started(env: Record<string, string>): Promise<RunningServer & { readonly lines: string[] }> {
  redis ??= startRedis();
  const schema = freshSchema();
  undo.push(() => dropSchema(`${schema}_recovery`));
  const fixed = {
    MAKEGOOD_STORE: "redis",
    REDIS_URL: (await redis).url,
    MAKEGOOD_REDIS_PREFIX: freshPrefix(),
    MAKEGOOD_SCHEMA: schema,
  };
  const lines: string[] = [];
  const log = createLog({ clock: systemClock, format: "json", level: "debug", write: (line) => void lines.push(line) });
  const server = await startServer({ config: await configOf({ ...fixed, ...env }), log });
  undo.push(() => server.close({ drainMs: 100 }));
  return { ...server, lines };
}

async function ask(server: RunningServer, path: string, body?: unknown, method = "POST") {
  const headers = { "content-type": "application/json" };
  const response = await fetch(server.url + path, body === undefined ? {} : { method, headers, body: JSON.stringify(body) });
  const text = await response.text();
  return { status: response.status, text, body: text.startsWith("{") ? JSON.parse(text) : text };
}

/** A dead letter: nobody listens where its topic sends. */
async function die(server: RunningServer): Promise<string> {
  const sink = { kind: "http", url: `http://127.0.0.1:${await freePort()}/` };
  const retry = { policy: "exponential", attempts_max: 1 };
  expect((await ask(server, "/api/v1/topics/shop/order", { sink, retry }, "PUT")).status).toBeLessThan(300);
  const { body } = await ask(server, "/api/v1/messages", { topic: "shop/order", payload: { n: 1 } });
  await vi.waitFor(async () => expect((await ask(server, `/api/v1/messages/${body.id}`)).body.status).toBe("dead"), 15_000);
  return body.id;
}

describe("a server on Redis", () => {
  it("without a DATABASE_URL answers 501 needs_postgres, and says what would give recovery a home", async () => {
    const server = await started({});
    const { status, body } = await ask(server, "/api/v1/recovery/stats");
    expect([status, body.code, body.detail]).toEqual([501, "needs_postgres", expect.stringContaining("DATABASE_URL")]);
    expect(server.lines.find((line) => line.includes("501") && line.includes("/api/v1/recovery"))).toContain("DATABASE_URL");
    expect((await ask(server, "/health")).body.recovery_home).toBeUndefined();
  });

  it("with one groups what died, and says in /health and /readyz that its home is reachable", async () => {
    const server = await started({ DATABASE_URL: databaseUrl() });
    const id = await die(server);
    await vi.waitFor(async () => {
      const { body } = await ask(server, "/api/v1/recovery/groups?open=true");
      expect(body.data).toMatchObject([{ topic: "shop/order", open_messages: 1 }]);
    }, 20_000);
    await vi.waitFor(async () => {
      expect((await ask(server, "/health")).body.recovery_home).toMatchObject({
        reachable: true,
        error: null,
        behind: 0,
      });
    }, 15_000);
    expect((await ask(server, "/readyz?verbose")).text).toContain("its home is reachable");
    expect((await ask(server, `/api/v1/messages/${id}/edit`, { payload: {}, reason: "typo" })).status).toBe(501);
    expect(server.lines.find((line) => line.includes("recovery is on"))).toContain("_recovery");
  });

  it("starts, accepts and delivers while PostgreSQL is away; recovery answers 503, and /health says why", async () => {
    const server = await started({ DATABASE_URL: `postgres://nobody@127.0.0.1:${await freePort()}/none` });
    const id = await die(server);
    const { status, body } = await ask(server, "/api/v1/recovery/stats");
    expect([status, body.code]).toEqual([503, "store_unavailable"]);
    await vi.waitFor(async () => {
      const health = (await ask(server, "/health")).body;
      expect(health).toMatchObject({ status: "degraded", recovery_home: { reachable: false, error: expect.any(String) } });
      expect(health.findings).toContainEqual(expect.objectContaining({ what: "recovery_home_away" }));
    }, 15_000);
    expect((await ask(server, "/readyz?verbose")).text).toContain("its home cannot be used");
    expect((await ask(server, "/readyz")).status).toBe(200);
    expect((await ask(server, `/api/v1/messages/${id}/resolve`, { reason: "by telephone" })).status).toBe(200);
    expect((await ask(server, `/api/v1/messages/${id}`)).status).toBe(200);
  });
});
