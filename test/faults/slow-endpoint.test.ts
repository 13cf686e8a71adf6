/**
 * Fault 34: one endpoint of several is slow. It may fill its share of the slots and no more, so the others' messages arrive as
 * soon as they did before.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { scene } from "./scene.ts";

vi.setConfig({ testTimeout: 60_000 });

const SLOW_MS = 3_000;

it("fault 34: one of five endpoints takes 3 s: the others' latency stays what it was", async () => {
  await using receiver = await startReceiver(({ path }) => ({ status: 200, afterMs: path === "/slow" ? SLOW_MS : 5 }));
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
  // Who waits for a slot of the slow one waits for as long as that takes; a busy machine is slow before, too.
  expect(p(during, 0.5)).toBeLessThan(Math.max(3 * p(before, 0.5), SLOW_MS / 4));
  expect(p(during, 0.95)).toBeLessThan(Math.max(3 * p(before, 0.95), SLOW_MS / 2));
});
