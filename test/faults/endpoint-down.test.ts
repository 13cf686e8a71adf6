/**
 * Faults 33 and 34: an endpoint that is down while a backlog waits for it, and one endpoint of several that is slow. The
 * breaker holds the backlog without spending its attempts, one worker of all probes, and all drains by itself; a slow
 * endpoint costs the others nothing.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { createMakegood, type MakegoodEvent, topic } from "../../src/index.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { scene } from "./scene.ts";

vi.setConfig({ testTimeout: 90_000 });

const BACKLOG = 2_000;

it("fault 33: down with a backlog of 2,000, then up: held by the breaker, probed, drained, attempts within the bound", async () => {
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
  await sleep(500);
  const burst = receiver.arrivals.length;
  // What both workers had under way when it opened, and no more.
  expect(burst).toBeLessThanOrEqual(4 * CONCURRENCY);
  const openedMs = performance.now();
  await sleep(8_000);
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

it("fault 33: refused connections open it, too, and no attempt is spent while it is open", async () => {
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

it("fault 34: one of five endpoints takes 3 s: the others' latency stays what it was", async () => {
  await using receiver = await startReceiver(({ path }) => ({ status: 200, afterMs: path === "/slow" ? 3_000 : 5 }));
  const endpoint = (name: string) => topic(`end/${name}`, { sink: { kind: "http", url: `${receiver.url}${name}` } });
  const names = ["a", "b", "c", "d"];
  await using fault = await scene({ topics: [...names, "slow"].map(endpoint), concurrency: 20 });
  fault.mg.work();
  let sent = 0;
  const latencies = async (): Promise<number[]> => {
    const took: number[] = [];
    for (let n = 0; n < 40; n++) {
      const key = `fast-${sent++}`;
      const startedMs = performance.now();
      await fault.mg.enqueue(`end/${names[n % 4]}`, n, { key });
      fault.history.ok(key, JSON.stringify(n));
      await until("it arrives", () => receiver.of(key).length > 0, 20_000);
      took.push(Number(receiver.of(key)[0]?.atMs) - startedMs);
    }
    return took.sort((a, b) => a - b);
  };
  const before = await latencies();
  await fault.send("end/slow", 100, undefined, "slow");
  await until("the slow endpoint is busy", () => receiver.arrivals.filter(({ path }) => path === "/slow").length >= 5);
  await sleep(500);
  const during = await latencies();
  const p = (values: number[], part: number) => values[Math.floor(values.length * part)] ?? Number.NaN;
  const line = `p50 ${p(before, 0.5).toFixed(0)} → ${p(during, 0.5).toFixed(0)} ms, p95 ${p(before, 0.95).toFixed(0)} → ${p(during, 0.95).toFixed(0)} ms`;
  process.stdout.write(`fault 34: beside a slow endpoint: ${line}\n`);
  expect((await fault.counts()).pending).toBeGreaterThan(0);
  expect(p(during, 0.5)).toBeLessThan(3 * Math.max(p(before, 0.5), 50));
  expect(p(during, 0.95)).toBeLessThan(3 * Math.max(p(before, 0.95), 250));
});
