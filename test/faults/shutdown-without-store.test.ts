/**
 * Fault 5 together with faults 13 and 17: SIGTERM while the database is silent or gone. There is one budget for the shutdown,
 * and it does not become the sum of every timeout on the way; what could not be written comes back when its lease ends.
 */
import { expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { databaseUrl } from "../support/postgres.ts";
import { startCli, until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { startProxy, targetOf } from "../support/tcp-proxy.ts";
import { scene } from "./scene.ts";

vi.setConfig({ testTimeout: 240_000 });

it.concurrent.for([
  { command: "work", what: "silent" },
  { command: "work", what: "gone" },
  { command: "serve", what: "silent" },
  { command: "serve", what: "gone" },
] as const)("faults 5 and 13: SIGTERM of $command while the database is $what: it ends in time", async ({ command, what }) => {
  const DRAIN_MS = 1_000;
  await using proxy = await startProxy(targetOf(databaseUrl()));
  await using receiver = await startReceiver({ status: 200, afterMs: 300 });
  const sink = { kind: "http" as const, url: receiver.url };
  await using fault = await scene({ topics: [topic("no/store", { sink, leaseMs: 3_000, timeoutMs: 2_000 })] });
  const env = { DATABASE_URL: proxy.via(fault.url), MAKEGOOD_SCHEMA: fault.schema, MAKEGOOD_DRAIN_MS: String(DRAIN_MS) };
  const worker = await startCli([command], { ...env, MAKEGOOD_PORT: "0", MAKEGOOD_CONCURRENCY: "4" });
  await worker.fact(({ message }) => message === "working" || message === "listening");
  await fault.send("no/store", 20);
  await until("it is at work", () => receiver.arrivals.length >= 4);
  if (what === "silent") proxy.silence("request", "reply");
  else {
    proxy.refuse();
    proxy.resetAll();
  }
  const signalledMs = performance.now();
  worker.signal("SIGTERM");
  const ended = await worker.ended;
  const tookMs = performance.now() - signalledMs;
  process.stdout.write(`faults 5 and 13: ${command}, ${what}: ended after ${(tookMs / 1_000).toFixed(1)} s with ${ended.code}\n`);
  expect(tookMs).toBeLessThan(25_000);
  expect(worker.stderr()).toBe("");
  expect(ended.code).toBe(0);
  const next = await startCli(["work"], { ...env, DATABASE_URL: fault.url });
  await fault.settled();
  expect(await next.end("SIGTERM")).toMatchObject({ code: 0 });
  expect(await fault.check({ receiver })).toEqual([]);
});
