/**
 * What one process may not or cannot do is no verdict of the receiver: with real processes that differ in their allow-list (N18) and one
 * that has run out of descriptors (N9). Nothing dies, nothing is charged, the reason can be read everywhere, and a worker that can delivers.
 */
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { createIds } from "../../src/platform/ids.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { createRedisStore } from "../../src/store/redis/index.ts";
import type { Store } from "../../src/store/store.ts";
import { newMessage } from "../../src/testing/store-conformance/fixtures.ts";
import { startableDist } from "../support/build.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { type Process, startCli, startShell, until, workspace } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { startRedis } from "../support/redis-server.ts";

vi.setConfig({ testTimeout: 120_000 });

const NAME = "local/hook";
const NOWHERE = { MAKEGOOD_SINK_ALLOW: "10.99.0.0/16" };
const LOOPBACK = { MAKEGOOD_SINK_ALLOW: "127.0.0.0/8" };
const CHILD = join(dirname(fileURLToPath(import.meta.url)), "descriptors-child.mjs");

interface Place {
  readonly store: Store;
  readonly env: Record<string, string>;
  drop(): Promise<void>;
}

const PLACES: Record<string, () => Promise<Place>> = {
  async PostgreSQL() {
    const schema = freshSchema();
    const env = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema };
    return { store: createPostgresStore({ url: databaseUrl(), schema, poolMax: 2 }), env, drop: () => dropSchema(schema) };
  },
  async Redis() {
    const server = await startRedis();
    const env = { MAKEGOOD_STORE: "redis", REDIS_URL: server.url };
    return { store: createRedisStore({ redis: server.url }), env, drop: () => server.stop() };
  },
};

async function counts(store: Store): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const { topic: name, status, count } of await store.counts({ delivered: true })) {
    if (name === NAME) found[status] = (found[status] ?? 0) + count;
  }
  return found;
}

async function serve(env: Record<string, string>): Promise<Process & { readonly url: string }> {
  const process = await startCli(["serve"], { MAKEGOOD_PORT: "0", MAKEGOOD_LOG: "json", ...env });
  const { url } = await process.fact(({ url: at }) => typeof at === "string");
  return { ...process, url: url as string };
}

const get = async (url: string): Promise<Record<string, unknown>> => (await (await fetch(url)).json()) as Record<string, unknown>;

describe.each(Object.keys(PLACES))("N18: processes with different allow-lists on one %s", (name) => {
  let place: Place | undefined;
  afterAll(async () => {
    await place?.store.close();
    await place?.drop();
  });

  it("the one that may delivers everything; while none may, nothing is charged and everybody says why", async () => {
    place = await (PLACES[name] as () => Promise<Place>)();
    const { store, env } = place;
    await using receiver = await startReceiver();
    await store.open();
    const { definition } = topic(NAME, { retry: { attemptsMax: 1 } });
    await store.topics.put({ ...definition, sink: { kind: "http", url: receiver.url } }, "api");
    const ids = createIds();
    const send = async (): Promise<string[]> => {
      const messages = Array.from({ length: 200 }, () => newMessage(ids(), { topic: NAME }));
      await store.enqueue(messages);
      return messages.map(({ id }) => id);
    };
    const sent = await send();
    const first = await serve({ ...env, ...NOWHERE });

    const held = async () => (await get(`${first.url}/api/v1/topics/${NAME}`)).held as { code: string; reason: string } | null;
    await until("the reason is known", async () => (await held())?.code === "address_refused");
    expect((await held())?.reason).toContain("loopback");
    await until("health tells it", async () => (await get(`${first.url}/health`)).status === "degraded", 20_000);
    const health = await get(`${first.url}/health`);
    expect(JSON.stringify(health.reasons)).toContain(`${NAME}: not served (address_refused`);
    expect(await (await fetch(`${first.url}/metrics`)).text()).toMatch(
      /makegood_topic_held\{topic="local\/hook",code="address_refused"\} 1/,
    );
    // Not the first one, which is the one that the worker finds out with.
    const message = await get(`${first.url}/api/v1/messages/${sent[100]}`);
    expect(message).toMatchObject({ status: "pending", attempts: 0, held_reason: "address_refused", timeline: [] });
    const cwd = await workspace();
    const [doctor, list] = await Promise.all([said(["doctor"], env, cwd), said(["topics", "list"], env, cwd)]);
    expect(doctor).toMatch(/fail +delivery +local\/hook is not served: address_refused: .*loopback/);
    expect(list).toMatch(/local\/hook .*not served: address_refused/);
    const { pending = 0, processing = 0, dead = 0 } = await counts(store);
    expect([pending + processing, dead, receiver.arrivals.length]).toEqual([200, 0, 0]);

    const second = await startCli(["work"], { MAKEGOOD_LOG: "json", ...env, ...LOOPBACK });
    await until("all are delivered", async () => (await counts(store)).delivered === 200, 30_000);
    await send();
    await until("all that came with both at work", async () => (await counts(store)).delivered === 400, 30_000);
    expect(await counts(store)).toEqual({ delivered: 400 });
    expect(receiver.effects.size).toBe(400);
    for (const id of sent.slice(0, 20))
      expect((await store.history(id)).attempts).toMatchObject([{ attempt: 1, outcome: "delivered" }]);
    expect(await held()).toBeNull();
    await Promise.all([first.end("SIGTERM"), second.end("SIGTERM")]);
  });
});

it("N9: without descriptors no attempt is spent and the worker goes on; all is delivered when there are some again", async () => {
  await using receiver = await startReceiver();
  const options = JSON.stringify({ dist: await startableDist(), port: receiver.port, count: 25 });
  const child = await startShell('ulimit -n 256 && exec "$0" "$@"', [process.execPath, CHILD, options]);
  const held = await child.fact(({ type }) => type === "exhausted");
  expect(held).toMatchObject({
    codes: ["no_descriptor"],
    topics: ["fd/address", "fd/name"],
    pending: 50,
    attempts: 0,
    breakers: 0,
  });
  const done = await child.fact(({ type }) => type === "delivered");
  expect(done).toMatchObject({ delivered: 50, dead: 0, attempts: 50 });
  expect(receiver.effects.size).toBe(50);
  expect(await child.ended).toEqual({ code: 0, signal: null });
});

const NETWORK = 'ip link set lo up && echo "40000 40009" > /proc/sys/net/ipv4/ip_local_port_range && exec "$0" "$@"';
const ownNetwork = spawnSync("unshare", ["-n", "sh", "-c", "ip link set lo up"]).status === 0;

it.runIf(ownNetwork)("N9: without local ports likewise (in a network of its own, which takes root)", async () => {
  const child = join(dirname(fileURLToPath(import.meta.url)), "ports-child.mjs");
  const options = JSON.stringify({ dist: await startableDist(), count: 25 });
  const worker = await startShell(`exec unshare -n sh -c '${NETWORK}' "$0" "$@"`, [process.execPath, child, options]);
  expect(await worker.fact(({ type }) => type === "exhausted")).toMatchObject({
    codes: ["no_local_port"],
    attempts: 0,
    arrived: 0,
  });
  expect(await worker.fact(({ type }) => type === "delivered")).toMatchObject({ delivered: 25, dead: 0, arrived: 25 });
  expect(await worker.ended).toEqual({ code: 0, signal: null });
});

async function said(args: string[], env: Record<string, string>, cwd: string): Promise<string> {
  const process = await startCli(args, env, cwd);
  await process.ended;
  return process.facts.map(({ line }) => line).join("\n");
}
