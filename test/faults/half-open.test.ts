/**
 * Fault 13: sockets that stay open and say nothing more, in either direction or both, as after a cut cable. Every call ends
 * within the configured time, the connection is dropped, nothing is lost, and after the cable is mended all goes on by itself.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { isMakegoodError, topic } from "../../src/index.ts";
import { databaseUrl } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { type Direction, startProxy, targetOf } from "../support/tcp-proxy.ts";
import { newMessage, scene } from "./scene.ts";

vi.setConfig({ testTimeout: 60_000 });

const QUERY_MS = 1_000;
const CONNECT_MS = 1_500;
/** One statement, one more to find the connection broken, and a machine that is busy with other suites. */
const BOUND_MS = 2 * QUERY_MS + CONNECT_MS + 4_000;

const CASES: { what: string; directions: Direction[] }[] = [
  { what: "both directions", directions: ["request", "reply"] },
  { what: "only what we send", directions: ["request"] },
  { what: "only what the server answers", directions: ["reply"] },
];

async function setUp(storeOptions = { queryTimeoutMs: QUERY_MS, connectTimeoutMs: CONNECT_MS }) {
  const proxy = await startProxy(targetOf(databaseUrl()));
  const receiver = await startReceiver({ status: 200, afterMs: 20 });
  const sink = { kind: "http" as const, url: receiver.url };
  const stage = await scene({
    topics: [topic("half/open", { sink, leaseMs: 3_000, timeoutMs: 2_000, retry: { baseMs: 100 } })],
    via: (url) => proxy.via(url),
    storeOptions,
  });
  return {
    ...stage,
    proxy,
    receiver,
    async [Symbol.asyncDispose]() {
      proxy.heal();
      proxy.resetAll();
      await stage[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
      await receiver[Symbol.asyncDispose]();
    },
  };
}

const codeOf = (error: unknown) => (isMakegoodError(error) ? error.code : String(error));

describe("fault 13: half-open sockets", () => {
  it.concurrent.for(CASES)(
    "fault 13: $what: every call ends in time with a typed error, and works again afterwards",
    async (given) => {
      await using stage = await setUp();
      const { store } = stage.mg;
      const [id = ""] = await stage.send("half/open", 3);
      const lanes = (await store.lanes()).map(({ lane }) => ({ lane, limit: 1 }));
      stage.proxy.silence(...given.directions);
      const calls: Record<string, () => Promise<unknown>> = {
        enqueue: () => store.enqueue([newMessage("half/open", "lost")]),
        batch: () => store.enqueue([newMessage("half/open"), newMessage("half/open", "also lost")]),
        lanes: () => store.lanes(),
        claim: () => store.claim({ owner: "me", leaseMs: 1_000, lanes }),
        get: () => store.get(id),
        check: () => store.check(),
      };
      for (const [name, call] of Object.entries(calls)) {
        const startedMs = performance.now();
        const thrown = await call().then(() => "it answered", codeOf);
        expect({ name, thrown }).toEqual({ name, thrown: expect.stringMatching(/^(outcome_unknown|store_unavailable)$/) });
        expect({ name, inTime: performance.now() - startedMs < BOUND_MS }).toEqual({ name, inTime: true });
      }
      // Each was dropped as soon as it was given up; only the one that listens has nothing to notice.
      await until("the broken connections are gone", () => stage.proxy.connections <= 1, 5_000);
      stage.proxy.heal();
      const works = () =>
        store.check().then(
          () => true,
          () => false,
        );
      await until("it works again", works, 10_000);
      expect((await stage.mg.enqueue("half/open", 1)).inserted).toBe(true);
    },
  );

  it.concurrent.for(CASES)("fault 13: $what: a worker in the middle of its work heals by itself", async ({ directions }) => {
    await using stage = await setUp();
    stage.mg.work({ concurrency: 10 });
    await stage.send("half/open", 300);
    await until("it is at work", () => stage.receiver.arrivals.length > 20);
    stage.proxy.silence(...directions);
    await sleep(2_500);
    // A caller that enqueues meanwhile is told that it worked, or that nobody knows.
    const late = stage.send("half/open", 5, undefined, "late").catch(() => {
      for (let n = 0; n < 5; n++) stage.history.unknown(`late-${n}`, JSON.stringify({ n }));
    });
    await sleep(500);
    stage.proxy.heal();
    await late;
    await stage.settled(40_000);
    expect(await stage.check({ receiver: stage.receiver, attemptsMax: 10 })).toEqual([]);
    // Backed off, not a hot loop: three seconds of silence are a few failures, not hundreds.
    expect(stage.of("store_error").length).toBeGreaterThan(0);
    expect(stage.of("store_error").length).toBeLessThan(100);
  });

  it.concurrent("fault 13: a slow line is not a broken one: 150 ms each way, and nothing is sent twice", async () => {
    await using stage = await setUp({ queryTimeoutMs: 5_000, connectTimeoutMs: 5_000 });
    stage.proxy.latency(150);
    stage.mg.work({ concurrency: 10 });
    await stage.send("half/open", 50);
    await stage.settled(40_000);
    expect(stage.receiver.arrivals).toHaveLength(50);
    expect(await stage.check({ receiver: stage.receiver, attemptsMax: 1 })).toEqual([]);
    expect(stage.of("store_error")).toEqual([]);
  });
});
