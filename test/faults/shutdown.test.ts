/**
 * Fault 5: SIGTERM while deliveries are under way. What can finish within the budget finishes, the rest is given back at once
 * and not counted as a failure, the process exits 0, and another worker does not have to wait for a lease.
 */
import { expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { startCli, until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { scene } from "./scene.ts";

vi.setConfig({ testTimeout: 60_000 });

it("fault 5: SIGTERM drains within its budget, gives the rest back uncounted, exits 0", async () => {
  const DRAIN_MS = 2_000;
  let soon = () => {};
  const told = new Promise<void>((resolve) => {
    soon = () => setTimeout(resolve, 500);
  });
  await using receiver = await startReceiver(({ body }) => {
    const { kind } = JSON.parse(body) as { kind: string };
    return kind === "slow" ? { status: 200, after: told } : "hang";
  });
  const sink = { kind: "http" as const, url: receiver.url };
  await using fault = await scene({ topics: [topic("drain/it", { sink, leaseMs: 60_000, timeoutMs: 50_000 })] });
  const env = { DATABASE_URL: fault.url, MAKEGOOD_SCHEMA: fault.schema, MAKEGOOD_DRAIN_MS: String(DRAIN_MS) };
  const worker = await startCli(["work"], { ...env, MAKEGOOD_CONCURRENCY: "16" });
  await worker.fact(({ message }) => message === "working");
  const slow = await fault.send("drain/it", 8, () => ({ kind: "slow" }), "slow");
  const stuck = await fault.send("drain/it", 8, () => ({ kind: "stuck" }), "stuck");
  await until("all slots are busy", () => receiver.open === 16);
  const waiting = await fault.send("drain/it", 20, () => ({ kind: "slow" }), "waiting");
  const signalledMs = performance.now();
  worker.signal("SIGTERM");
  soon();
  expect(await worker.ended).toEqual({ code: 0, signal: null });
  const tookMs = performance.now() - signalledMs;
  // Not before the budget is used up, because eight are stuck; grace, settle and exit come on top.
  expect(tookMs).toBeGreaterThan(DRAIN_MS - 100);
  expect(tookMs).toBeLessThan(DRAIN_MS + 8_000);
  expect(worker.stderr()).toBe("");

  for (const id of slow) expect(await fault.store.get(id)).toMatchObject({ status: "delivered", attempts: 1 });
  for (const id of stuck) {
    expect(await fault.store.get(id)).toMatchObject({ status: "pending", attempts: 0 });
    const { attempts } = await fault.store.history(id);
    expect(attempts.map(({ outcome, counted }) => ({ outcome, counted }))).toEqual([{ outcome: "interrupted", counted: false }]);
  }
  for (const id of waiting) expect(receiver.of(id)).toEqual([]);
  expect(await fault.counts()).toMatchObject({ processing: 0, dead: 0 });

  // At once: the lease would have lasted a minute.
  receiver.default({ status: 200 });
  const next = await startCli(["work"], env);
  await fault.settled(20_000);
  expect(await next.end("SIGTERM")).toMatchObject({ code: 0 });
  expect(await fault.check({ receiver, attemptsMax: 1 })).toEqual([]);
});
