/**
 * Fault 13: sockets that stay open and say nothing more, in either direction or both, as after a cut cable. Every call ends
 * within the configured time, the connection is dropped, nothing is lost, and after the cable is mended all goes on by itself.
 */
import { describe, expect, it, vi } from "vitest";
import { isMakegoodError, topic } from "../../src/index.ts";
import { databaseUrl } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { type Direction, startProxy, targetOf } from "../support/tcp-proxy.ts";
import { scene } from "./scene.ts";

vi.setConfig({ testTimeout: 60_000 });

const QUERY_MS = 500;
const CONNECT_MS = 500;
/** One statement, one more to find the connection broken, and a machine that is busy with other suites. */
const BOUND_MS = 2 * QUERY_MS + CONNECT_MS + 2_000;

const CASES: { what: string; directions: Direction[] }[] = [
  { what: "both directions", directions: ["request", "reply"] },
  { what: "only what we send", directions: ["request"] },
  { what: "only what the server answers", directions: ["reply"] },
];

describe.concurrent.for(CASES)("fault 13: half-open sockets, $what", ({ what, directions }) => {
  async function setUp() {
    const proxy = await startProxy(targetOf(databaseUrl()));
    const receiver = await startReceiver();
    const sink = { kind: "http" as const, url: receiver.url };
    const stage = await scene({
      topics: [topic("half/open", { sink, leaseMs: 3_000, timeoutMs: 2_000, retry: { baseMs: 100 } })],
      via: (url) => proxy.via(url),
      storeOptions: { queryTimeoutMs: QUERY_MS, connectTimeoutMs: CONNECT_MS },
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

  it(`fault 13: ${what}: every call of the store ends in time with a typed error, and works again afterwards`, async () => {
    await using stage = await setUp();
    const { store } = stage.mg;
    await stage.send("half/open", 3);
    const lanes = await store.lanes();
    const message = (await store.list({ limit: 1 })).data[0];
    stage.proxy.silence(...directions);
    const calls: Record<string, () => Promise<unknown>> = {
      enqueue: () => store.enqueue([{ ...newMessage(), key: "lost" }]),
      batch: () => store.enqueue([newMessage(), { ...newMessage(), key: "also lost" }]),
      lanes: () => store.lanes(),
      claim: () => store.claim({ owner: "me", leaseMs: 1_000, lanes: lanes.map(({ lane }) => ({ lane, limit: 1 })) }),
      get: () => store.get(message?.id ?? ""),
      check: () => store.check(),
    };
    for (const [name, call] of Object.entries(calls)) {
      const startedMs = performance.now();
      const thrown = await call().then(
        () => "it answered",
        (error: unknown) => (isMakegoodError(error) ? error.code : String(error)),
      );
      expect({ name, thrown }).toEqual({ name, thrown: expect.stringMatching(/^(outcome_unknown|store_unavailable)$/) });
      expect({ name, inTime: performance.now() - startedMs < BOUND_MS }).toEqual({ name, inTime: true });
    }
    stage.proxy.heal();
    await until(
      "it works again",
      () =>
        store.check().then(
          () => true,
          () => false,
        ),
      10_000,
    );
    expect((await stage.mg.enqueue("half/open", 1)).inserted).toBe(true);
  });

  it(`fault 13: ${what}: a worker in the middle of its work heals by itself`, async () => {
    await using stage = await setUp();
    stage.receiver.default({ status: 200, afterMs: 20 });
    stage.mg.work({ concurrency: 10 });
    await stage.send("half/open", 300);
    await until("it is at work", () => stage.receiver.arrivals.length > 20);
    stage.proxy.silence(...directions);
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    // Whoever enqueues meanwhile is told that it worked, or that nobody knows.
    const late = stage.send("half/open", 5, undefined, "late").catch(() => {
      for (let n = 0; n < 5; n++) stage.history.unknown(`late-${n}`, JSON.stringify({ n }));
    });
    await new Promise((resolve) => setTimeout(resolve, 500));
    stage.proxy.heal();
    await late;
    await stage.settled(40_000);
    expect(await stage.check({ receiver: stage.receiver, attemptsMax: 10 })).toEqual([]);
    expect(stage.of("store_error").length).toBeGreaterThan(0);
    // Backed off, not a hot loop: three seconds of silence are a few failures, not hundreds.
    expect(stage.of("store_error").length).toBeLessThan(100);
  });
});

let made = 0;
function newMessage() {
  const hex = (Date.now() + made).toString(16).padStart(12, "0");
  const id = `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${String(++made).padStart(12, "0")}`;
  const fields = {
    tenantId: null,
    key: null,
    delayMs: 0,
    priority: 0,
    orderingKey: null,
    traceparent: null,
    schemaVersion: null,
  };
  return { ...fields, id, topic: "half/open", payload: "1", payloadHash: "0".repeat(32) };
}
