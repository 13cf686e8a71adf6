/**
 * N2: a primary store that is not open yet is a store that is away, from the first call on. A real PostgreSQL behind a proxy that opens after
 * three seconds, or never: nobody waits for it, nothing is lost with -9, and what is said of it meanwhile is true.
 */
import { afterAll, describe, expect, it, vi } from "vitest";
import { createMakegood } from "../../src/index.ts";
import { createJournal } from "../../src/store/journal/journal.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { entry, freshDirectory } from "../journal/support.ts";
import { startableDist } from "../support/build.ts";
import { databaseUrl, dropSchema, openStore, refusedUrl } from "../support/postgres.ts";
import { startScript, until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { startProxy, type TcpProxy, targetOf } from "../support/tcp-proxy.ts";
import { fragile, ladderScene, TOPIC } from "./support.ts";

vi.setConfig({ testTimeout: 60_000 });

const schemas: string[] = [];
afterAll(async () => {
  for (const schema of schemas) await dropSchema(schema);
});

const CHILD = new URL("./deliver-child.mjs", import.meta.url).pathname;
const LATE_MS = 3_000;

/** The first bytes of the first connection take three seconds, all others no time. */
async function late<T>(proxy: TcpProxy, connecting: () => Promise<T>): Promise<T> {
  proxy.latency(LATE_MS);
  const connected = connecting();
  await until("it has begun to connect", () => proxy.connections > 0);
  setTimeout(() => proxy.latency(0), 200);
  return connected;
}

async function migrated(): Promise<string> {
  const store = await openStore();
  schemas.push(store.schema);
  await store.close();
  return store.schema;
}

describe("a PostgreSQL that opens after three seconds", () => {
  it("deliver() works from the first call on, health says that it is away, and everything moves up when it is open", async () => {
    await using receiver = await startReceiver();
    await using proxy = await startProxy(targetOf(databaseUrl()));
    const schema = await migrated();
    const store = createPostgresStore({ url: proxy.via(databaseUrl()), schema });
    const startedMs = performance.now();
    const options = { url: receiver.url, store, openWithinMs: 0, journal: { directory: await freshDirectory() } };
    const { mg, of } = await late(proxy, () => ladderScene(options));
    receiver.default({ status: 503 });
    const queued = await mg.deliver(TOPIC, 1, { key: "early" });
    expect(queued).toMatchObject({ kind: "queued", code: "http_503", stored: "journal", survives: "power-loss" });
    expect(performance.now() - startedMs).toBeLessThan(LATE_MS - 200);
    expect(mg.opened()).toBe(false);
    expect(mg.ladder.status()).toMatchObject({ primary: "down", waiting: { journal: 1, memory: 0 } });
    receiver.default({ status: 200 });
    expect(await mg.deliver(TOPIC, 2)).toMatchObject({ kind: "delivered" });
    await mg.whenOpened();
    expect(mg.opened()).toBe(true);
    expect(of("lifecycle").filter(({ what }) => what === "store_opened")).toHaveLength(1);
    // Delivered from the journal meanwhile, or moved up and delivered by a worker: once, either way.
    mg.work();
    await expect.poll(() => receiver.effects.has("early"), { timeout: 10_000 }).toBe(true);
    await expect.poll(() => mg.ladder.status(), { timeout: 10_000 }).toMatchObject({ primary: "up", waiting: { journal: 0 } });
    expect((await mg.enqueue(TOPIC, 3)).inserted).toBe(true);
    await mg.close();
  });

  it("enqueue() promises the store alone: it waits for a moment, then it is unavailable and says why", async () => {
    await using proxy = await startProxy(targetOf(databaseUrl()));
    const store = createPostgresStore({ url: proxy.via(databaseUrl()), schema: await migrated() });
    const { mg } = await late(proxy, () => ladderScene({ url: "http://127.0.0.1:4999/", store, openWithinMs: 0 }));
    await expect(mg.enqueue(TOPIC, 1)).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("not open yet"),
    });
    await expect.poll(() => mg.enqueue(TOPIC, 2), { timeout: 10_000 }).toMatchObject({ inserted: true });
    await mg.close();
  });

  it("killed with -9 before it is open: what deliver() returned is in the journal and reaches the receiver", async () => {
    await using receiver = await startReceiver({ status: 503 });
    await using proxy = await startProxy(targetOf(databaseUrl()));
    const schema = await migrated();
    const directory = await freshDirectory();
    await startableDist();
    const child = await late(proxy, () =>
      startScript(CHILD, {
        ...{ url: proxy.via(databaseUrl()), schema, directory, receiver: receiver.url, topic: TOPIC },
        ...{ openWithinMs: 0, count: 20, prefix: "k" },
      }).then(async (started) => {
        await started.fact(({ type }) => type === "finished");
        return started;
      }),
    );
    const results = child.facts.filter(({ type }) => type === "result");
    expect(results).toHaveLength(20);
    for (const result of results) expect(result).toMatchObject({ kind: "queued", survives: "power-loss" });
    await child.end("SIGKILL");
    receiver.default({ status: 200 });
    const journal = createJournal({ directory, goneMs: 500 });
    const store = createPostgresStore({ url: databaseUrl(), schema });
    // As many attempts as the one before it had: on a slow machine that spent more than a few.
    const topic = { retry: { attemptsMax: 50, baseMs: 20, maxMs: 200 } };
    const { mg } = await ladderScene({ url: receiver.url, store, journal, topic });
    mg.work();
    await until("all have their effect", async () => {
      await journal.takeOver();
      await mg.ladder.drain();
      return results.every(({ key }) => receiver.effects.has(String(key)));
    });
    expect(mg.ladder.status()).toMatchObject({ waiting: { journal: 0 }, quarantined: 0 });
    await mg.close();
    // Handed in as an object it is the caller's to close.
    expect(await journal.append(entry())).toEqual({ kind: "kept" });
    await journal.close();
  });
});

describe("a store that never opens", () => {
  it("what only memory has stands in the ERROR log; close() ends, and what waits hears it", async () => {
    await using receiver = await startReceiver({ status: 503 });
    await using proxy = await startProxy(targetOf(databaseUrl()));
    proxy.silence("request", "reply");
    const store = createPostgresStore({ url: proxy.via(databaseUrl()), connectTimeoutMs: 1_000 });
    const { mg, lines } = await ladderScene({ url: receiver.url, store, openWithinMs: 0 });
    expect(await mg.deliver(TOPIC, "kept")).toMatchObject({ kind: "queued", stored: "memory", survives: "nothing" });
    expect(lines.filter((line) => line.includes('\\"kept\\"'))).toHaveLength(1);
    const waiting = expect(mg.whenOpened()).rejects.toMatchObject({ code: "closed" });
    await mg.close({ drainMs: 0 });
    await waiting;
    await expect(mg.whenOpened()).rejects.toMatchObject({ code: "closed" });
  });

  it("whenOpened() ends with its signal", async () => {
    const primary = fragile();
    primary.mode = "hangs";
    const { mg } = await ladderScene({ url: "http://127.0.0.1:4999/", store: primary.store, openWithinMs: 0 });
    const controller = new AbortController();
    const waiting = expect(mg.whenOpened(controller.signal)).rejects.toThrow("no longer");
    controller.abort(new Error("no longer"));
    await waiting;
    primary.mode = "up";
    await mg.close();
  });

  it("a store that is there and refuses us is told once, waiters hear why, and it is used when it is mended", async () => {
    const url = refusedUrl();
    const told: unknown[] = [];
    const wrong = createPostgresStore({ url });
    const mg = await createMakegood({ store: wrong, openWithinMs: 0, storeRefused: (error) => told.push(error) });
    await expect(mg.whenOpened()).rejects.toThrow("password authentication failed");
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect(told).toHaveLength(1);
    await expect(mg.enqueue("a/b", 1)).rejects.toThrow("password authentication failed");
    await mg.close();
    await expect(createMakegood({ store: createPostgresStore({ url }), openWithinMs: 10_000 })).rejects.toThrow(
      "password authentication failed",
    );
  });
});
