/**
 * Fault 33 (and DO-11): an endpoint that is down while a backlog waits for it. The breaker holds the backlog without spending
 * its attempts, one worker of all probes, also when the one that was about to is killed, and all drains by itself.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { createMakegood, type MakegoodEvent, topic } from "../../src/index.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { startWorker, until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { scene } from "./scene.ts";

vi.setConfig({ testTimeout: 90_000 });

const BACKLOG = 2_000;

it.concurrent("fault 33: down with a backlog of 2,000, then up: held by the breaker, probed, drained, attempts within the bound", async () => {
  const CONCURRENCY = 10;
  await using receiver = await startReceiver({ status: 503 });
  const sink = { kind: "http" as const, url: receiver.url };
  const declared = topic("down/up", { sink, retry: { attemptsMax: 3, baseMs: 200, maxMs: 400 } });
  await using fault = await scene({ topics: [declared], concurrency: CONCURRENCY });
  // A second worker process, as far as the store can tell.
  const events: MakegoodEvent[] = [];
  await using other = await createMakegood({
    store: createPostgresStore({ url: fault.url, schema: fault.schema }),
    topics: [declared],
    concurrency: CONCURRENCY,
    pollMs: 200,
    onEvent: (event) => events.push(event),
  });
  await fault.send("down/up", BACKLOG);
  fault.mg.work();
  other.work();
  const breaker = async () => (await fault.store.topics.get("down/up"))?.breaker.state;
  await until("the breaker opens", async () => (await breaker()) === "open");
  let burst = -1;
  while (receiver.arrivals.length > burst) {
    burst = receiver.arrivals.length;
    await sleep(500);
  }
  // What both workers had under way when it opened, and no more.
  expect(burst).toBeLessThanOrEqual(4 * CONCURRENCY);
  const openedMs = performance.now();
  await sleep(5_000);
  const probes = receiver.arrivals.length - burst;
  // Cool-downs of 1, 2, 4, … seconds, one probe after each, whichever worker has it.
  expect(probes).toBeGreaterThanOrEqual(1);
  expect(probes).toBeLessThanOrEqual(5);
  const { pending, processing, dead } = await fault.counts();
  expect({ waiting: pending + processing, dead }).toEqual({ waiting: BACKLOG, dead: 0 });
  const [spent] = await fault.sql("select count(*)::int as n from attempt where counted");
  expect(Number(spent?.n)).toBeLessThanOrEqual(burst + probes + 1);

  receiver.default({ status: 200 });
  await fault.settled(40_000);
  await until("the breaker is closed", async () => (await breaker()) === "closed", 10_000);
  const states = [...fault.events, ...events].flatMap((event) => (event.type === "breaker" ? [event.state] : []));
  expect(new Set(states)).toEqual(new Set(["open", "half_open", "closed"]));
  process.stdout.write(
    `fault 33: burst ${burst}, ${probes} probes, drained ${((performance.now() - openedMs) / 1_000).toFixed(1)} s later\n`,
  );
  expect(await fault.check({ receiver, attemptsMax: 3 })).toEqual([]);
});

it.concurrent("fault 33: refused connections open it, too, and no attempt is spent while it is open", async () => {
  await using receiver = await startReceiver();
  await receiver.down();
  const sink = { kind: "http" as const, url: receiver.url };
  await using fault = await scene({
    topics: [topic("down/up", { sink, retry: { attemptsMax: 4, baseMs: 200 } })],
    concurrency: 10,
  });
  await fault.send("down/up", 200);
  fault.mg.work();
  await until("the breaker opens", () => fault.of("breaker").some(({ state }) => state === "open"));
  await sleep(3_000);
  const [spent] = await fault.sql("select count(*)::int as n from attempt where counted");
  expect(Number(spent?.n)).toBeLessThanOrEqual(45);
  await receiver.up();
  await fault.settled(30_000);
  expect(await fault.check({ receiver, attemptsMax: 4 })).toEqual([]);
});

it.concurrent("fault 33: the worker that holds the probe is killed in the middle of it: another one probes", async () => {
  await using receiver = await startReceiver({ status: 503 });
  const limits = { leaseMs: 2_000, timeoutMs: 1_500, retry: { attemptsMax: 10, baseMs: 100, maxMs: 200 } };
  await using fault = await scene({ topics: [topic("down/up", { ...limits, sink: { kind: "http", url: receiver.url } })] });
  const { url, schema } = fault;
  const topics = [{ name: "down/up", url: receiver.url, ...limits }];
  await fault.send("down/up", 50);
  const prober = await startWorker({ url, schema, topics });
  await prober.fact(({ event, state }) => event === "breaker" && state === "open");
  receiver.default("hang");
  await prober.fact(({ event, state }) => event === "breaker" && state === "half_open");
  const before = receiver.arrivals.length;
  await until("the probe is under way", () => receiver.arrivals.length > before || receiver.open > 0);
  await prober.end("SIGKILL");
  receiver.default({ status: 200 });
  const other = await startWorker({ url, schema, topics });
  await fault.settled(30_000);
  expect((await fault.store.topics.get("down/up"))?.breaker.state).toBe("closed");
  expect(await other.end("SIGTERM")).toMatchObject({ code: 0 });
  expect(await fault.check({ receiver, attemptsMax: 10 })).toEqual([]);
});
