import { describe, expect, it } from "vitest";
import { topic } from "../../../src/index.ts";
import { pause, setUp, until } from "./support.ts";

describe("shutdown (fault 5, DX-9)", () => {
  it("finishes what runs, gives back what was not started, and nothing more is claimed", async () => {
    let started = 0;
    let finished = 0;
    const slow = topic("a/slow", {
      sink: async () => {
        started++;
        await pause(60);
        finished++;
      },
    });
    const { mg, store, count } = await setUp([slow], { concurrency: 4, sharedStore: true });
    const worker = mg.work();
    const ids = await mg.enqueueMany(
      slow,
      Array.from({ length: 40 }, () => ({ payload: 0 })),
    );
    await until(() => started === 4);
    await worker.stop();
    expect(worker.status()).toMatchObject({ state: "stopped", running: 0, waiting: 0, unsettled: 0 });
    expect(finished).toBe(started);
    expect(await count("delivered")).toBe(finished);
    expect(await count("processing")).toBe(0);
    const attempts = await Promise.all(ids.map(async ({ id }) => (await store.get(id))?.attempts ?? 0));
    expect(attempts.filter((n) => n === 0)).toHaveLength(40 - finished);
    const before = started;
    await pause(50);
    expect(started).toBe(before);
    await worker.stop();
    await mg.close();
    await store.close();
  });

  it("interrupts what does not finish within the budget, and that is not a failure", async () => {
    let aborted = 0;
    const endless = topic("a/endless", {
      sink: (_, __, { signal }) =>
        new Promise((_resolve, rejected) => {
          signal.addEventListener("abort", () => {
            aborted++;
            rejected(signal.reason);
          });
        }),
    });
    const deaf = topic("a/deaf", { sink: { kind: "test", deliver: () => new Promise(() => undefined) } });
    const { mg, store, count, of } = await setUp([endless, deaf], { concurrency: 8, sharedStore: true });
    const worker = mg.work();
    const ids = [...(await mg.enqueueMany(endless, [{ payload: 0 }, { payload: 1 }])), await mg.enqueue(deaf, 0)];
    await until(() => worker.status().running === 3);
    const start = performance.now();
    await worker.stop({ drainMs: 50 });
    expect(performance.now() - start).toBeLessThan(3_000);
    expect(aborted).toBe(2);
    expect(await count("pending")).toBe(3);
    for (const { id } of ids) {
      expect((await store.get(id))?.attempts).toBe(0);
      expect((await store.history(id)).attempts).toMatchObject([{ outcome: "interrupted", counted: false }]);
    }
    expect(of("breaker")).toEqual([]);
    await mg.close();
    await store.close();
  });

  it("an answer that comes after the abort still counts", async () => {
    const late = topic("a/late", {
      sink: {
        kind: "test",
        deliver: (_, { signal }) =>
          new Promise((resolve) => signal.addEventListener("abort", () => setTimeout(() => resolve({ kind: "delivered" }), 20))),
      },
    });
    const { mg, store, count } = await setUp([late], { sharedStore: true });
    const worker = mg.work();
    await mg.enqueue(late, 0);
    await until(() => worker.status().running === 1);
    await worker.stop({ drainMs: 0 });
    expect(await count("delivered")).toBe(1);
    await mg.close();
    await store.close();
  });

  it("is async-disposable, worker and all", async () => {
    const quick = topic("a/quick", { sink: () => undefined });
    const { mg, store } = await setUp([quick], { sharedStore: true });
    {
      await using all = mg;
      await using worker = all.work();
      await all.enqueue(quick, 1);
      await until(async () => (await store.counts({ delivered: true }))[0]?.status === "delivered");
      expect(worker.status().state).toBe("working");
    }
    expect(() => mg.work()).toThrow(/closed/);
    await store.close();
  });
});
