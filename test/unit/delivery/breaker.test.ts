import { describe, expect, it } from "vitest";
import { createMakegood, createMemoryStore, type Outcome, type Sink, topic } from "../../../src/index.ts";
import { restMs } from "../../../src/worker/breaker/breaker.ts";
import { Evidence } from "../../../src/worker/breaker/evidence.ts";
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
  it("opens after five different messages, holds the rest without spending attempts, probes with one a second, and closes (fault 33)", async () => {
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
    const sinceMs = clock.monotonicMs();
    await until(() => state.calls >= tried + 5);
    // One a second, the first at once.
    expect(clock.monotonicMs() - sinceMs).toBeGreaterThan(3_500);
    const charged = await Promise.all(ids.map(async ({ id }) => (await store.get(id))?.attempts ?? 0));
    expect(charged.filter((attempts) => attempts > 0).length).toBeLessThanOrEqual(10);
    expect(Math.max(...charged)).toBe(1);
    state.answer = { kind: "delivered" };
    await until(async () => (await count("delivered")) === 300, 20_000);
    // Told at each change, and not at each probe.
    expect(of("breaker").map(({ state: now }) => now)).toEqual(["open", "half_open", "closed"]);
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

  it("is shared: the other worker stops too, and they probe one a second between them", async () => {
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
    await until(async () => (await store.topics.get("a/down"))?.breaker.state !== "closed");
    await pause(50);
    const before = state.calls;
    const sinceMs = clock.monotonicMs();
    await until(() => state.calls >= before + 4);
    expect(clock.monotonicMs() - sinceMs).toBeGreaterThan(2_500);
    expect(of("store_error")).toEqual([]);
    await other.close();
    await mg.close();
  });

  it("N1: a failed probe leaves its row, is not charged, and its message does not probe again while others never failed", async () => {
    const clock = fastClock(10);
    const { state, sink } = receiver();
    const down = topic("a/down", { sink, retry });
    const { mg, store, count } = await setUp([down], { clock, concurrency: 5 });
    const ids = await mg.enqueueMany(
      down,
      Array.from({ length: 40 }, (_, n) => ({ payload: n })),
    );
    mg.work();
    await until(() => state.calls >= 20);
    const rows = (await Promise.all(ids.map(({ id }) => store.history(id)))).map(({ attempts }) => attempts);
    const uncharged = rows.filter((attempts) => attempts.some(({ counted }) => !counted));
    expect(uncharged.length).toBeGreaterThanOrEqual(8);
    expect(uncharged.every((attempts) => attempts.length === 1)).toBe(true);
    state.answer = { kind: "delivered" };
    await until(async () => (await count("delivered")) === 40, 20_000);
    await mg.close();
  });

  it.each(["none", "key"] as const)(
    "N1: with nothing left that never failed, one a second of those that did stands in, charged more and more seldom (order: %s)",
    async (ordering) => {
      const clock = fastClock(10);
      const { state, sink } = receiver();
      const down = topic("a/down", { sink, retry, ordering });
      const { mg, store, count } = await setUp([down], { clock, concurrency: 5 });
      const some = Array.from({ length: 5 }, (_, n) => ({ payload: n, orderingKey: ordering === "key" ? `k${n}` : undefined }));
      const ids = await mg.enqueueMany(down, some);
      mg.work();
      await until(() => state.calls >= 5);
      const sinceMs = clock.monotonicMs();
      await until(() => state.calls >= 17, 20_000);
      const tookS = (clock.monotonicMs() - sinceMs) / 1_000;
      // One a second, and no rest that hides the return.
      expect(tookS).toBeGreaterThan(10);
      const rows = (await Promise.all(ids.map(async ({ id }) => (await store.history(id)).attempts))).flat();
      // Rests of 1, 2, 4, 8 … s between those that are charged.
      const charged = rows.filter(({ counted }) => counted).length - 5;
      expect(charged).toBeGreaterThanOrEqual(2);
      expect(charged).toBeLessThanOrEqual(Math.ceil(Math.log2(tookS + 1)) + 1);
      expect(rows.filter(({ counted }) => !counted).length).toBeGreaterThanOrEqual(4);
      const attempts = await Promise.all(ids.map(async ({ id }) => (await store.get(id))?.attempts ?? 0));
      expect(attempts.reduce((sum, n) => sum + n, 0)).toBeLessThanOrEqual(5 + charged + 1);
      state.answer = { kind: "delivered" };
      const atMs = clock.monotonicMs();
      await until(async () => (await count("delivered")) > 0);
      expect(clock.monotonicMs() - atMs).toBeLessThan(8_000);
      await until(async () => (await count("delivered")) === 5);
      await mg.close();
    },
  );

  it("N1: only the first failure of a message is evidence: poison that is tried again and again opens nothing", async () => {
    const poison = topic("a/poison", {
      sink: (payload) => (payload === "bad" ? Promise.reject(new Error("mine")) : Promise.resolve()),
      retry: { attemptsMax: 30, baseMs: 1, maxMs: 1 },
    });
    const { mg, count, of } = await setUp([poison], { concurrency: 1 });
    mg.work();
    // Four at a time: never five first failures in a row.
    for (let n = 0; n < 4; n++) {
      await mg.enqueueMany(
        poison,
        ["bad", "bad", "bad", "good"].map((payload) => ({ payload })),
      );
      await until(async () => (await count("delivered")) === n + 1);
    }
    await until(async () => (await count("dead")) === 12);
    expect(of("breaker")).toEqual([]);
    await mg.close();
  });

  it("N1: a receiver that answered is not held on for those that failed before: with only poison left it closes, and the poison ends", async () => {
    const clock = fastClock(10);
    const sink: Sink = {
      kind: "http",
      deliver: async ({ payload }) => (payload === '"good"' ? { kind: "delivered" } : DOWN),
    };
    const mixed = topic("a/mixed", { sink, retry: { attemptsMax: 5, baseMs: 100, maxMs: 200 } });
    const { mg, store, count } = await setUp([mixed], { clock });
    mg.work();
    await mg.enqueueMany(
      mixed,
      Array.from({ length: 30 }, () => ({ payload: "bad" })),
    );
    await until(async () => (await store.topics.get("a/mixed"))?.breaker.state !== "closed");
    await pause(100);
    await mg.enqueue(mixed, "good");
    await until(async () => (await count("delivered")) === 1);
    await until(async () => (await count("dead")) === 30, 5_000);
    expect((await store.topics.get("a/mixed"))?.breaker.state).toBe("closed");
    await mg.close();
  });

  it("N1: where two in five fail although the receiver lives, five in a row are chance; where none did, they open it", () => {
    const seen = (outcomes: readonly boolean[]) => {
      const evidence = new Evidence();
      let opened = 0;
      for (const [n, ok] of outcomes.entries()) {
        if (ok) evidence.lived(null);
        else if (evidence.failed(`m${n}`, null, n)) opened++;
      }
      return opened;
    };
    const some = (count: number, ok: (n: number) => boolean) => Array.from({ length: count }, (_, n) => ok(n));
    const mixed = some(200, (n) => n % 5 > 1);
    expect(seen([...mixed, ...some(7, () => false)])).toBe(0);
    expect(seen([...mixed, ...some(20, () => false)])).toBeGreaterThan(0);
    expect(seen([...some(200, () => true), ...some(4, () => false)])).toBe(0);
    expect(seen([...some(200, () => true), ...some(5, () => false)])).toBe(1);
    expect(seen(some(5, () => false))).toBe(1);
  });

  it("N1: a tenant that fails alone is held alone; when a second one joins it, the topic is held", async () => {
    const clock = fastClock(10);
    const failing = new Set(["t1"]);
    const sink: Sink = {
      kind: "http",
      deliver: async ({ tenantId }) => {
        await pause(1);
        return failing.has(tenantId ?? "") ? DOWN : { kind: "delivered" };
      },
    };
    const shared = topic("a/shared", { sink, retry: { ...retry, baseMs: 60_000, maxMs: 60_000 } });
    const { mg, store, count, of } = await setUp([shared], { clock, concurrency: 4 });
    const send = (tenantId: string, n: number) =>
      mg.enqueueMany(
        shared,
        Array.from({ length: n }, () => ({ payload: 0, tenantId })),
      );
    mg.work();
    await send("t1", 60);
    const breaker = async () => (await store.topics.get("a/shared"))?.breaker;
    await until(async () => ((await breaker())?.tenants.length ?? 0) > 0);
    await send("t2", 200);
    await until(async () => (await count("delivered")) === 200);
    expect(await breaker()).toMatchObject({ state: "closed", tenants: [{ tenantId: "t1" }] });
    expect(of("breaker")[0]).toMatchObject({ state: "open", tenantId: "t1" });
    // Both away: the first failures of the second, with no success in between.
    failing.add("t2").add("t3");
    await send("t2", 4);
    await send("t3", 4);
    await until(async () => (await breaker())?.state !== "closed");
    failing.clear();
    await until(async () => (await breaker())?.state === "closed", 20_000);
    expect((await breaker())?.tenants).toEqual([]);
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

  it("what failed before rests longer each time, up to thirty seconds", () => {
    expect([0, 1, 2, 3, 5, 6, 40].map(restMs)).toEqual([1_000, 1_000, 2_000, 4_000, 16_000, 30_000, 30_000]);
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
