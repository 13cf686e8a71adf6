/**
 * Fault 14: every connection of ours is terminated by the server, every second, while messages are accepted and delivered. No
 * error event goes unheard (an idle client without a handler would end the process), nothing is lost, and it heals at once.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { databaseUrl, withClient } from "../support/postgres.ts";
import { startCli } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { scene } from "./scene.ts";

const SECONDS = process.env.MAKEGOOD_SOAK === "1" ? 15 : 5;
vi.setConfig({ testTimeout: 90_000 });

it(`fault 14: pg_terminate_backend on all connections every second for ${SECONDS} s under load`, async () => {
  const name = `fault14_${process.pid}`;
  const named = new URL(databaseUrl());
  named.searchParams.set("application_name", name);
  await using receiver = await startReceiver(() => ({ status: 200, afterMs: 5 }));
  const sink = { kind: "http" as const, url: receiver.url };
  const retry = { attemptsMax: 20, baseMs: 50, maxMs: 500 };
  await using fault = await scene({
    topics: [topic("cut/off", { sink, leaseMs: 2_000, timeoutMs: 1_500, retry })],
    via: () => named.href,
  });
  const env = { DATABASE_URL: named.href, MAKEGOOD_SCHEMA: fault.schema, MAKEGOOD_POLL_MS: "200", MAKEGOOD_CONCURRENCY: "10" };
  const workers = await Promise.all([startCli(["work"], env), startCli(["work"], env)]);
  await Promise.all(workers.map((worker) => worker.fact(({ message }) => message === "working")));

  const enough = new AbortController();
  let sent = 0;
  const callers = Array.from({ length: 4 }, async (_, caller) => {
    for (let n = 0; !enough.signal.aborted; n++) {
      const key = `c${caller}-${n}`;
      const payload = { caller, n };
      await fault.mg.enqueue("cut/off", payload, { key }).then(
        () => fault.history.ok(key, JSON.stringify(payload)),
        () => fault.history.unknown(key, JSON.stringify(payload)),
      );
      sent++;
      await sleep(20);
    }
  });
  let terminated = 0;
  await withClient(async (client) => {
    for (let second = 0; second < SECONDS; second++) {
      await sleep(1_000);
      const text = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1";
      terminated += (await client.query(text, [name])).rows.length;
    }
  });
  enough.abort();
  await Promise.all(callers);
  await fault.settled(30_000);

  process.stdout.write(`fault 14: ${terminated} connections terminated, ${sent} messages sent\n`);
  expect(terminated).toBeGreaterThan(SECONDS * 3);
  expect(fault.history.names("ok").length).toBeGreaterThan(sent * 0.9);
  for (const worker of workers) {
    expect(await worker.end("SIGTERM")).toEqual({ code: 0, signal: null });
    expect(worker.stderr()).toBe("");
  }
  expect(await fault.check({ receiver, attemptsMax: 20 })).toEqual([]);
});
