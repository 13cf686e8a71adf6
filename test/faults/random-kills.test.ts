/**
 * Fault 2: four workers (`makegood work`), one of them at random killed every 0.2 to 2 seconds while thousands of messages are
 * accepted and delivered. At every moment every accepted message is in exactly one place, and in the end all are delivered.
 * FAULT_SEED repeats a run; MAKEGOOD_SOAK=1 makes it the long version.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { outOfOrder, runSeed, seeded } from "../support/history.ts";
import { type Process, startCli, workspace } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { scene } from "./scene.ts";

const soak = process.env.MAKEGOOD_SOAK === "1";
const MESSAGES = soak ? 20_000 : 2_000;
const KILLS = soak ? 100 : 6;
vi.setConfig({ testTimeout: soak ? 900_000 : 120_000 });

it("fault 2: random SIGKILLs of four workers lose nothing and settle nothing twice", async () => {
  const random = seeded(runSeed("fault 2"));
  await using receiver = await startReceiver(() => ({ status: 200, afterMs: Math.floor(random() * 20) }));
  const sink = { kind: "http" as const, url: receiver.url };
  await using fault = await scene({
    topics: [topic("kill/any", { sink, leaseMs: 2_000, timeoutMs: 1_500, retry: { attemptsMax: 20, baseMs: 50, maxMs: 500 } })],
  });
  const cwd = await workspace();
  const env = { DATABASE_URL: fault.url, MAKEGOOD_SCHEMA: fault.schema, MAKEGOOD_POLL_MS: "200", MAKEGOOD_CONCURRENCY: "10" };
  const start = () => startCli(["work"], env, cwd);
  const workers: Process[] = await Promise.all([start(), start(), start(), start()]);
  await Promise.all(workers.map((worker) => worker.fact(({ message }) => message === "working")));

  let sent = 0;
  const sending = (async () => {
    for (let batch = 0; batch < 20; batch++) {
      const text = () => "€".repeat(Math.floor(random() * 50));
      await fault.send("kill/any", (MESSAGES / 20) * 0.8, (n) => ({ n, text: text() }), `b${batch}`);
      // The rest of them in order, by ten keys.
      for (let i = 0; i < (MESSAGES / 20) * 0.2; i++) {
        const n = batch * 1_000 + i;
        const payload = { orderingKey: `o${i % 10}`, n };
        await fault.mg.enqueue("kill/any", payload, { key: `ordered-${n}`, orderingKey: payload.orderingKey });
        fault.history.ok(`ordered-${n}`, JSON.stringify(payload));
      }
      sent += MESSAGES / 20;
      await sleep((KILLS * 700) / 20);
    }
  })();
  for (let kill = 0; kill < KILLS; kill++) {
    await sleep(200 + random() * 1_800);
    const victim = Math.floor(random() * workers.length);
    expect(workers[victim]?.over).toBe(false);
    await workers[victim]?.end("SIGKILL");
    workers[victim] = await start();
    // C, at a moment of no significance: what was accepted before the look is there, and nothing else but what came since.
    const before = sent;
    const { pending, processing, delivered, dead } = await fault.counts();
    const all = pending + processing + delivered + dead;
    expect(all).toBeGreaterThanOrEqual(before);
    expect(all).toBeLessThanOrEqual(MESSAGES);
    expect(dead).toBe(0);
  }
  await sending;
  await fault.settled(soak ? 300_000 : 60_000);

  for (const worker of workers) {
    await worker.fact(({ message }) => message === "working");
    expect(await worker.end("SIGTERM")).toEqual({ code: 0, signal: null });
    expect(worker.stderr()).toBe("");
  }
  expect(await fault.check({ receiver, attemptsMax: 20 })).toEqual([]);
  expect(receiver.effects.size).toBe(MESSAGES);
  const placeOf = (body: string) => {
    const { orderingKey, n } = JSON.parse(body) as { orderingKey?: string; n: number };
    return orderingKey === undefined ? null : { key: orderingKey, n };
  };
  expect(outOfOrder(receiver.arrivals, placeOf)).toEqual([]);
  const repeats = receiver.arrivals.length - MESSAGES;
  process.stdout.write(`fault 2: ${KILLS} kills, ${MESSAGES} messages, ${repeats} repeated deliveries\n`);
});
