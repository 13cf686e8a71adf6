import { describe, expect, it } from "vitest";
import { createMemoryStore, type Sink, topic } from "../../../src/index.ts";
import { fastClock, pause, setUp, until, wrap } from "./support.ts";

describe("deadlines (fault 30)", () => {
  it("aborts at the deadline; a sink that reacts decides, one that does not is abandoned as unknown and its slot freed", async () => {
    const clock = fastClock(10);
    const reacting = topic("a/reacting", {
      timeoutMs: 300,
      retry: { attemptsMax: 1 },
      sink: {
        kind: "test",
        deliver: (_, { signal }) =>
          new Promise((resolve) =>
            signal.addEventListener("abort", () => resolve({ kind: "retry", code: "slow", error: String(signal.reason.name) })),
          ),
      },
    });
    const deaf = topic("a/deaf", {
      timeoutMs: 300,
      retry: { attemptsMax: 1 },
      sink: { kind: "test", deliver: () => new Promise(() => undefined) },
    });
    const throwing = topic("a/throwing", {
      timeoutMs: 300,
      retry: { attemptsMax: 1 },
      sink: {
        kind: "test",
        deliver: (_, { signal }) =>
          new Promise((_resolve, rejected) => signal.addEventListener("abort", () => rejected(signal.reason))),
      },
    });
    const { mg, of } = await setUp([reacting, deaf, throwing], { clock, concurrency: 3 });
    const worker = mg.work();
    for (const one of [reacting, deaf, throwing]) await mg.enqueue(one, 0);
    await until(() => of("attempt").length === 3);
    const outcomes = Object.fromEntries(of("attempt").map(({ topic: name, outcome, code, ms }) => [name, { outcome, code, ms }]));
    expect(outcomes["a/reacting"]).toMatchObject({ outcome: "retry", code: "slow" });
    expect(outcomes["a/deaf"]).toMatchObject({ outcome: "unknown", code: "timeout" });
    expect(outcomes["a/throwing"]).toMatchObject({ outcome: "unknown", code: "timeout" });
    expect(outcomes["a/reacting"]?.ms).toBeGreaterThanOrEqual(300);
    expect(worker.status().running).toBe(0);
    await mg.close();
  });

  it("makes a signal only for who reads it", async () => {
    let context: { signal: AbortSignal; timeoutMs: number } | undefined;
    const sink: Sink = {
      kind: "test",
      deliver: (_, given) => {
        context = given;
        return { kind: "delivered" };
      },
    };
    const lazy = topic("a/lazy", { sink, timeoutMs: 1_234 });
    const { mg, count } = await setUp([lazy]);
    mg.work();
    await mg.enqueue(lazy, 0);
    await until(async () => (await count("delivered")) === 1);
    expect(context?.timeoutMs).toBe(1_234);
    expect(context?.signal.aborted).toBe(false);
    await mg.close();
  });

  it("refuses a deadline that outlives the lease, except for a function, whose lease is extended", () => {
    const http = { kind: "http", url: "https://x.example", timeoutMs: 30_000 } as const;
    expect(() => topic("a/b", { sink: http })).toThrow(/before its lease/);
    expect(() => topic("a/b", { sink: { ...http, timeoutMs: 29_000 } })).not.toThrow();
    expect(() => topic("a/b", { sink: () => undefined, timeoutMs: 600_000 })).not.toThrow();
    expect(() => topic("A/b")).toThrow(/namespace\/name/);
    // @ts-expect-error there is no such policy
    expect(() => topic("a/b", { leaseMs: 5, concurrency: 0, retry: "nope" })).toThrow(/leaseMs.*concurrency.*retry.policy/);
    // As over HTTP: a first wait that is longer than the longest.
    expect(() => topic("a/b", { retry: { policy: "exponential", baseMs: 2_000, maxMs: 1_000 } })).toThrow(/2000.*maxMs \(1000\)/);
  });
});

describe("leases", () => {
  it("extends the lease under a function that runs longer than it, so that nobody else gets the message", async () => {
    const clock = fastClock(10);
    const memory = createMemoryStore({ clock });
    let extended = 0;
    const store = wrap(memory, {
      extend: async (...args) => {
        extended++;
        return memory.extend(...args);
      },
    });
    let calls = 0;
    const long = topic("a/long", {
      leaseMs: 1_000,
      timeoutMs: 60_000,
      sink: async () => {
        calls++;
        await pause(400);
      },
    });
    const { mg, count, of } = await setUp([long], { clock, store });
    mg.work();
    mg.work();
    await mg.enqueue(long, 0);
    await until(async () => (await count("delivered")) === 1);
    expect(calls).toBe(1);
    expect(extended).toBeGreaterThanOrEqual(5);
    expect(of("claim_lost")).toEqual([]);
    await mg.close();
  });

  it("aborts what runs when the claim is lost, drops what waits, and writes nothing (faults 3 and 6)", async () => {
    const clock = fastClock(10);
    const memory = createMemoryStore({ clock });
    let cut: boolean = true;
    const store = wrap(memory, {
      extend: async (claims, ...rest) => (cut ? claims.map(() => "lost") : memory.extend(claims, ...rest)),
    });
    const reasons: unknown[] = [];
    const long = topic("a/long", {
      leaseMs: 2_000,
      timeoutMs: 60_000,
      sink: (_, __, { signal }) => {
        if (!cut) return;
        return new Promise<void>((resolve) =>
          signal.addEventListener("abort", () => {
            reasons.push(signal.reason);
            resolve();
          }),
        );
      },
    });
    const { mg, of, count } = await setUp([long], { clock, store, concurrency: 2 });
    mg.work();
    await mg.enqueueMany(
      long,
      Array.from({ length: 4 }, () => ({ payload: 0 })),
    );
    await until(() => of("claim_lost").length >= 4);
    expect(reasons.length).toBeGreaterThanOrEqual(2);
    expect(String(reasons[0])).toContain("lost");
    expect(of("attempt").filter(({ outcome }) => outcome !== "lost")).toEqual([]);
    cut = false;
    await until(async () => (await count("delivered")) === 4, 20_000);
    await mg.close();
  });

  it("a handler that blocks the event loop past its lease changes nothing it no longer owns (fault 6)", async () => {
    const memory = createMemoryStore();
    let blocked = false;
    const settled: string[] = [];
    const store = wrap(memory, {
      settle: async (settles, at) => {
        const results = await memory.settle(settles, at);
        settled.push(...results);
        return results;
      },
    });
    const blocking = topic("a/blocking", {
      leaseMs: 1_000,
      sink: async () => {
        if (blocked) return;
        blocked = true;
        await pause(1);
        // Another worker would have taken the lease over by now.
        const end = performance.now() + 1_200;
        while (performance.now() < end);
        for (const message of await memory.reclaim({ owner: "other", leaseMs: 30_000, limit: 10 })) {
          const release = { kind: "release" } as const;
          await memory.settle([
            { id: message.id, claim: message.claim, attempt: message.attempt, durationMs: null, settlement: release },
          ]);
        }
      },
    });
    const { mg, count, of } = await setUp([blocking], { store });
    mg.work();
    await mg.enqueue(blocking, 0);
    await until(async () => (await count("delivered")) === 1);
    expect(of("claim_lost").length + settled.filter((result) => result === "lost").length).toBeGreaterThanOrEqual(1);
    await mg.close();
  });
});
