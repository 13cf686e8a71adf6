/**
 * Fault 15: SIGKILL of the postmaster under load; its supervisor starts it again. What was acknowledged is delivered,
 * what was not may be there or not but never in part, and workers and callers need no restart.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { startEmbedded } from "../../src/store/postgres/embedded.ts";
import { startCli, until, workspace } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { scene } from "./scene.ts";

vi.setConfig({ testTimeout: 120_000 });

const closing: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

it("fault 15: SIGKILL of the postmaster three times under load: nothing acknowledged is lost", async () => {
  const server = await startEmbedded({ dataDir: await workspace() });
  closing.push(() => server.close());
  await using receiver = await startReceiver(() => ({ status: 200, afterMs: 5 }));
  const sink = { kind: "http" as const, url: receiver.url };
  const retry = { attemptsMax: 20, baseMs: 50, maxMs: 500 };
  await using fault = await scene({
    url: server.url,
    topics: [topic("crash/server", { sink, leaseMs: 3_000, timeoutMs: 2_000, retry })],
  });
  const env = { DATABASE_URL: server.url, MAKEGOOD_SCHEMA: fault.schema, MAKEGOOD_POLL_MS: "200", MAKEGOOD_CONCURRENCY: "10" };
  const worker = await startCli(["work"], env);
  await worker.fact(({ message }) => message === "working");

  const enough = new AbortController();
  let rolledBack = 0;
  const callers = Array.from({ length: 4 }, async (_, caller) => {
    for (let n = 0; !enough.signal.aborted; n++) {
      const key = `c${caller}-${n}`;
      const payload = { caller, n };
      await fault.mg.enqueue("crash/server", payload, { key }).then(
        () => fault.history.ok(key, JSON.stringify(payload)),
        () => {
          rolledBack++;
          fault.history.unknown(key, JSON.stringify(payload));
        },
      );
      await sleep(10);
    }
  });
  for (let kill = 0; kill < 3; kill++) {
    const before = fault.history.names("ok").length;
    await until("messages are accepted", () => fault.history.names("ok").length > before + 100);
    const killed = server.pid;
    process.kill(killed, "SIGKILL");
    await until("the server is back", () => server.pid !== killed);
  }
  const before = fault.history.names("ok").length;
  await until("messages are accepted after the last kill", () => fault.history.names("ok").length > before + 100);
  enough.abort();
  await Promise.all(callers);
  await until("all is settled", async () => {
    const { pending, processing } = await fault.counts();
    return pending + processing === 0;
  });
  process.stdout.write(`fault 15: ${fault.history.size} sent, ${rolledBack} with an unknown outcome\n`);
  expect(await worker.end("SIGTERM")).toEqual({ code: 0, signal: null });
  expect(worker.stderr()).toBe("");
  expect(await fault.check({ receiver, attemptsMax: 20 })).toEqual([]);
});
