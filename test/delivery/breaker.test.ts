import { describe, expect, it } from "vitest";
import { cooldownMs } from "../../src/delivery/breaker.ts";
import { createMakegood, createMemoryStore, type Outcome, type Sink, topic } from "../../src/index.ts";
import { fastClock, pause, setUp, until } from "./support.ts";

const DOWN: Outcome = { kind: "retry", code: "http_503", error: "down" };
const retry = { attemptsMax: 20, baseMs: 100, maxMs: 200 } as const;

/** A receiver that can be switched, and counts. */
function receiver() {
  const state = { calls: 0, answer: DOWN as Outcome, closed: 0 };
  const sink: Sink = {
    kind: "http",
    deliver: async () => {
      state.calls++;
      await pause(1);
      return state.answer;
    },
    close: async () => void state.closed++,
  };
  return { state, sink };
}

describe("the breaker", () => {
  it("opens after five different messages, holds the rest without spending attempts, probes with one, and closes (fault 33)", async () => {
    const clock = fastClock(10);
    const { state, sink } = receiver();
    const down = topic("a/down", { sink, retry });
    const { mg, store, count, of } = await setUp([down], { clock, concurrency: 5 });
    const ids = await mg.enqueueMany(
      down,
      Array.from({ length: 300 }, (_, n) => ({ payload: n })),
    );
    mg.work();
    await until(() => of("breaker").some(({ state: now }) => now === "open"));
    const tried = state.calls;
    expect(tried).toBeLessThanOrEqual(10);
    // Two seconds of its time, over several probes: one message each, no more.
    await until(() => of("breaker").filter(({ state: now }) => now === "open").length >= 3);
    expect(state.calls - tried).toBeLessThanOrEqual(of("breaker").filter(({ state: now }) => now === "half_open").length);
    expect(of("attempt").length).toBeLessThanOrEqual(state.calls);
    const untouched = await Promise.all(ids.map(async ({ id }) => (await store.get(id))?.attempts ?? 0));
    expect(untouched.filter((attempts) => attempts === 0).length).toBeGreaterThan(280);
    state.answer = { kind: "delivered" };
    await until(async () => (await count("delivered")) === 300, 20_000);
    expect(of("breaker").at(-1)).toMatchObject({ state: "closed" });
    expect((await store.topics.get("a/down"))?.breaker).toMatchObject({ state: "closed", trips: 0 });
    await mg.close();
  });

  it.each(["unasked", "answers"] as const)(
    "N4: failures that say `%s` of the receiver open nothing, by a worker or by deliver()",
    async (about) => {
      const { state, sink } = receiver();
      state.answer = { ...DOWN, kind: "retry", receiver: about } as Outcome;
      const down = topic("a/down", { sink, retry: { attemptsMax: 1 } });
      const { mg, count, of } = await setUp([down]);
      for (let n = 0; n < 8; n++) await mg.deliver(down, n);
      mg.work();
      await mg.enqueueMany(
        down,
        Array.from({ length: 20 }, (_, n) => ({ payload: n })),
      );
      await until(async () => (await count("dead")) >= 20);
      expect(of("breaker")).toEqual([]);
      await mg.close();
    },
  );

  it("is shared: the other worker stops too, and only one of them probes", async () => {
    const clock = fastClock(10);
    const { state, sink } = receiver();
    const down = topic("a/down", { sink, retry });
    const store = createMemoryStore({ clock });
    const { mg, of } = await setUp([down], { clock, store });
    const other = await createMakegood({ store, clock, topics: [down], sharedStore: true });
    mg.work();
    other.work();
    await mg.enqueueMany(
      down,
      Array.from({ length: 500 }, () => ({ payload: 0 })),
    );
    await until(async () => (await store.topics.get("a/down"))?.breaker.state === "open");
    await pause(20);
    const before = state.calls;
    await until(async () => ((await store.topics.get("a/down"))?.breaker.trips ?? 0) >= 3);
    expect(state.calls - before).toBeLessThanOrEqual(4);
    expect(of("store_error")).toEqual([]);
    await other.close();
    await mg.close();
  });

  it("an answer about the message is proof of life; a success in between starts the count again", async () => {
    const answers: Outcome[] = [DOWN, DOWN, DOWN, DOWN, { kind: "reject", code: "bad", error: "bad" }, DOWN, DOWN, DOWN, DOWN];
    let n = 0;
    const sink: Sink = { kind: "http", deliver: () => answers[n++] ?? { kind: "delivered" } };
    const mixed = topic("a/mixed", { sink, retry: { ...retry, baseMs: 60_000, maxMs: 60_000 } });
    const { mg, of } = await setUp([mixed], { concurrency: 1 });
    mg.work();
    await mg.enqueueMany(
      mixed,
      Array.from({ length: 20 }, () => ({ payload: 0 })),
    );
    await until(() => of("attempt").length === 20);
    expect(of("breaker")).toEqual([]);
    await mg.close();
  });

  it("the same message failing again and again does not open it", async () => {
    const one = topic("a/one", {
      sink: () => Promise.reject(new Error("mine")),
      retry: { attemptsMax: 12, baseMs: 1, maxMs: 1 },
    });
    const { mg, count, of } = await setUp([one]);
    mg.work();
    await mg.enqueue(one, 1);
    await until(async () => (await count("dead")) === 1);
    expect(of("breaker")).toEqual([]);
    await mg.close();
  });

  it("cools down longer each time, up to thirty seconds", () => {
    expect([0, 1, 2, 4, 5, 40].map(cooldownMs)).toEqual([1_000, 2_000, 4_000, 16_000, 30_000, 30_000]);
  });
});

describe("a sink that wants nothing more", () => {
  it("is disabled for all, its messages are held without losing an attempt, and resuming goes on", async () => {
    const { state, sink } = receiver();
    state.answer = { kind: "disable", code: "http_410", error: "gone" };
    const gone = topic("a/gone", { sink, retry });
    const { mg, store, count, of } = await setUp([gone]);
    mg.work();
    const ids = await mg.enqueueMany(
      gone,
      Array.from({ length: 100 }, () => ({ payload: 0 })),
    );
    await until(() => of("sink_disabled").length === 1);
    await pause(100);
    const calls = state.calls;
    expect(calls).toBeLessThanOrEqual(50);
    expect((await store.topics.get("a/gone"))?.disabledReason).toContain("410");
    await pause(100);
    expect(state.calls).toBe(calls);
    expect(Math.max(...(await Promise.all(ids.map(async ({ id }) => (await store.get(id))?.attempts ?? 9))))).toBe(0);
    state.answer = { kind: "delivered" };
    await store.topics.pause("a/gone", false);
    await until(async () => (await count("delivered")) === 100);
    await mg.close();
  });
});

describe("pause and change", () => {
  it("a pause takes effect at once, gives back what was not started, and resuming goes on", async () => {
    let running = 0;
    let started = 0;
    const slow = topic("a/slow", {
      sink: async () => {
        started++;
        running++;
        await pause(40);
        running--;
      },
    });
    const { mg, store, count } = await setUp([slow], { concurrency: 2 });
    mg.work();
    await mg.enqueueMany(
      slow,
      Array.from({ length: 30 }, () => ({ payload: 0 })),
    );
    await until(() => started >= 2);
    await store.topics.pause("a/slow", true);
    await until(() => running === 0);
    await until(async () => (await count("processing")) === 0);
    const before = started;
    await pause(150);
    expect(started).toBe(before);
    await store.topics.pause("a/slow", false);
    await until(async () => (await count("delivered")) === 30);
    await mg.close();
  });

  it("a changed definition gets a new sink, and the old one is closed when its last attempt is over", async () => {
    const made: ReturnType<typeof receiver>[] = [];
    const store = createMemoryStore();
    const { mg, count } = await setUp([], {
      store,
      sinkFor: () => {
        const one = receiver();
        one.state.answer = { kind: "delivered" };
        made.push(one);
        return one.sink;
      },
    });
    const definition = topic("a/api", { sink: { kind: "http", url: "https://one.example" } }).definition;
    await store.topics.put(definition, "api");
    mg.work();
    await mg.enqueue("a/api", 1);
    await until(async () => (await count("delivered")) === 1);
    await store.topics.put({ ...definition, sink: { ...definition.sink, url: "https://two.example" } }, "api");
    await until(() => made[0]?.state.closed === 1);
    await mg.enqueue("a/api", 2);
    await until(async () => (await count("delivered")) === 2);
    expect(made.map(({ state }) => [state.calls, state.closed])).toEqual([
      [1, 1],
      [1, 0],
    ]);
    await mg.close();
    expect(made[1]?.state.closed).toBe(1);
  });
});
