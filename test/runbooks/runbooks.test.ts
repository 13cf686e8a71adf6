/**
 * The runbooks, followed by a shell on real servers: the fault comes first and its alert fires by the shipped rules, the page's commands are
 * run as they stand, and the alert is silent again.
 */
import { afterAll, expect, it } from "vitest";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { createRedisStore } from "../../src/store/redis/index.ts";
import { removeWorkspaces, workspace } from "../cli/support.ts";
import { startTestServer } from "../server/support.ts";
import { ownPostgres } from "../support/own-postgres.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { type Answer, type Arrival, startReceiver } from "../support/receiver.ts";
import { DURABLE, startRedis } from "../support/redis-server.ts";
import { fill, smallDisk } from "../support/small-disk.ts";
import { startProxy, targetOf } from "../support/tcp-proxy.ts";
import { follow } from "./runbook.ts";
import { LOOPBACK, openDeadLetters, putTopic, RETRY, scrapeOf, send, shownAs, startDaemon, systemctl, TOPIC } from "./scene.ts";

afterAll(removeWorkspaces);

async function served(answer: (arrival: Arrival) => Answer) {
  const schema = freshSchema();
  const store = createPostgresStore({ url: databaseUrl(), schema });
  const server = await startTestServer(LOOPBACK, { store });
  const receiver = await startReceiver(answer);
  const sink = { kind: "http", url: `${receiver.url}/charge` };
  await putTopic(server, { sink, retry: RETRY });
  return {
    server,
    receiver,
    async [Symbol.asyncDispose]() {
      await server.close({ drainMs: 500 });
      await receiver[Symbol.asyncDispose]();
      await dropSchema(schema);
    },
  };
}

it("a poison message: mended or discarded, and no dead letter is left", async () => {
  // It takes numbers only.
  await using scene = await served(({ body }) => ({ status: /"amount":\d/.test(body) ? 200 : 422 }));
  const { server, receiver } = scene;
  const printed = await follow("poison-message", null, {
    cwd: await workspace(),
    env: { MAKEGOOD_URL: server.url, TOPIC },
    scrape: () => scrapeOf(server),
    async inject() {
      for (const amount of [1, "twelve", 3, "nine"]) await send(server, { amount });
    },
    until: (scrape, there) => openDeadLetters(scrape) === (there ? 2 : 0),
  });
  expect(printed.Look).toContain("422");
  expect(printed["Over when"]).not.toMatch(/dead/);
  await expect.poll(() => receiver.arrivals.filter(({ body }) => body === '{"amount":12}').length).toBe(1);
}, 60_000);

it("a flood of dead letters: the receiver is back, a redrive heals the group", async () => {
  let broken = true;
  await using scene = await served(() => ({ status: broken ? 400 : 200 }));
  const { server } = scene;
  const printed = await follow("flood-of-dead-letters", "M10DeadLettersHigh", {
    cwd: await workspace(),
    env: { MAKEGOOD_URL: server.url },
    scrape: () => scrapeOf(server),
    async inject() {
      for (let n = 0; n < 120; n++) await send(server, { amount: n });
      await expect.poll(async () => openDeadLetters(await scrapeOf(server)), { timeout: 30_000 }).toBe(120);
      broken = false;
    },
    until: (scrape, there) => openDeadLetters(scrape) === (there ? 120 : 0),
  });
  expect(printed.Do).toMatch(/120 of 120 messages healed, 0 failed/);
}, 60_000);

it("PostgreSQL lost: it comes back by itself, with what waited below", async () => {
  const schema = freshSchema();
  await using proxy = await startProxy(targetOf(databaseUrl()));
  const store = createPostgresStore({ url: proxy.via(databaseUrl()), schema });
  const server = await startTestServer(LOOPBACK, { store });
  try {
    const back = async () => proxy.heal();
    await follow("postgres-lost", "MakegoodStoreDown", {
      cwd: await workspace(),
      env: { MAKEGOOD_URL: server.url },
      programs: { systemctl: systemctl({ postgresql: { start: back } }) },
      scrape: () => scrapeOf(server),
      async inject() {
        proxy.refuse();
        proxy.resetAll();
      },
      until: (scrape, there) => shownAs(scrape, /^makegood_store_up /) === (there ? 0 : 1),
    });
  } finally {
    proxy.heal();
    await server.close({ drainMs: 500 });
    await dropSchema(schema);
  }
}, 60_000);

it("Redis lost: it comes back without its data, which is said until a person knows", async () => {
  const redis = await startRedis(DURABLE);
  const prefix = "runbook";
  const server = await startTestServer(
    { ...LOOPBACK, REDIS_URL: redis.url },
    { store: createRedisStore({ redis: redis.url, prefix }) },
  );
  try {
    await putTopic(server, { sink: { kind: "notify" }, paused: true });
    await send(server, { amount: 1 });
    const printed = await follow("redis-lost", "MakegoodStoreDown", {
      cwd: await workspace(),
      env: { MAKEGOOD_URL: server.url, REDIS_URL: redis.url },
      programs: { systemctl: systemctl({ "redis-server": { start: () => redis.start() } }) },
      scrape: () => scrapeOf(server),
      async inject() {
        await redis.ask("FLUSHALL");
        await redis.stop("SIGKILL");
      },
      until: (scrape, there) => shownAs(scrape, /^makegood_store_up /) === (there ? 0 : 1),
    });
    expect(printed.Look).toContain("unhealthy");
    expect(printed["Over when"]).toContain('"healthy"');
  } finally {
    await server.close({ drainMs: 500 });
    await redis.stop();
  }
}, 60_000);

it("disk full: room is made, and it accepts again by itself", async () => {
  const disk = await smallDisk(130);
  const settings = { max_wal_size: "32MB", min_wal_size: "32MB", shared_buffers: "16MB" };
  const postgres = await ownPostgres({ folder: disk, settings });
  const cwd = await workspace();
  await using makegood = await startDaemon(cwd, { DATABASE_URL: postgres.url });
  await putTopic(makegood, { sink: { kind: "notify" }, paused: true });
  const sendLarge = () => makegood.send("POST", "/api/v1/messages", { topic: TOPIC, payload: "x".repeat(200_000) });
  expect((await sendLarge()).status).toBe(201);
  const printed = await follow("disk-full", "MakegoodStoreDown", {
    cwd,
    env: { MAKEGOOD_URL: makegood.url, DATA_DIR: postgres.pgdata },
    programs: { systemctl: systemctl({ postgresql: { start: async () => (postgres.running ? undefined : postgres.start()) } }) },
    scrape: makegood.scrape,
    async inject() {
      await fill(disk, "ballast");
      await expect.poll(async () => (await sendLarge()).status, { interval: 1 }).toBeGreaterThanOrEqual(500);
    },
    until: (scrape, there) => shownAs(scrape, /^makegood_store_up /) === (there ? 0 : 1),
  });
  expect(printed.Look).toMatch(/100%.*\n$/);
  expect((await sendLarge()).status).toBe(201);
  await makegood.service.stop();
  await postgres.stop();
}, 120_000);
