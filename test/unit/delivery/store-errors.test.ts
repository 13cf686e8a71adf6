import { describe, expect, it } from "vitest";
import { createMemoryStore, MakegoodError, type Store, topic } from "../../../src/index.ts";
import { fastClock, pause, setUp, until, wrap } from "./support.ts";

const down = () => new MakegoodError("store_unavailable", "the database went away");

/** Fails the named method while `failing` says so, and counts the calls. */
function failing<M extends "settle" | "claim" | "lanes" | "idle">(memory: Store, method: M, fails: (call: number) => unknown) {
  const counter = { calls: 0 };
  const original = memory[method].bind(memory) as (...args: unknown[]) => Promise<unknown>;
  const store = wrap(memory, {
    [method]: async (...args: unknown[]) => {
      const error = fails(++counter.calls);
      if (error) throw error;
      return original(...args);
    },
  });
  return { store, counter };
}

describe("a store that fails", () => {
  it("twenty calls that wait for it at once are no leak to Node, which would warn the program's users", async () => {
    const memory = createMemoryStore();
    let calls = 0;
    const store = wrap(memory, {
      enqueue: async (...args) => {
        if (++calls <= 20) throw down();
        return memory.enqueue(...args);
      },
    });
    const t = topic("a/t", { sink: () => undefined });
    const { mg, count } = await setUp([t], { store });
    const warnings: string[] = [];
    const warned = (warning: Error): void => void warnings.push(warning.name);
    process.on("warning", warned);
    await Promise.all(Array.from({ length: 20 }, (_, i) => mg.enqueue(t, i)));
    await pause(10);
    process.off("warning", warned);
    expect(await count("pending")).toBe(20);
    expect(warnings).toEqual([]);
    await mg.close();
  });

  it("settles again until it is written, without another attempt (fault 12)", async () => {
    let delivered = 0;
    const { store } = failing(createMemoryStore(), "settle", (call) => (call <= 3 ? down() : null));
    const t = topic("a/t", { sink: () => void delivered++ });
    const { mg, count, of } = await setUp([t], { store });
    const worker = mg.work();
    await mg.enqueueMany(
      t,
      Array.from({ length: 10 }, () => ({ payload: 0 })),
    );
    await until(async () => (await count("delivered")) === 10);
    expect(delivered).toBe(10);
    expect(of("store_error").filter(({ during }) => during === "settle").length).toBe(3);
    expect(of("claim_lost")).toEqual([]);
    await until(() => worker.status().storeFailures === 0);
    await mg.close();
  });

  it("a reply that was lost after the write is told lost, and the message is settled once (fault 12)", async () => {
    const memory = createMemoryStore();
    let calls = 0;
    const store = wrap(memory, {
      settle: async (...args) => {
        const results = await memory.settle(...args);
        if (++calls === 1) throw new MakegoodError("outcome_unknown", "no reply to COMMIT");
        return results;
      },
    });
    const t = topic("a/t", { sink: () => undefined });
    const { mg, count, of } = await setUp([t], { store });
    mg.work();
    const { id } = await mg.enqueue(t, 0);
    await until(() => of("claim_lost").length === 1);
    expect(await count("delivered")).toBe(1);
    expect((await store.history(id)).attempts).toHaveLength(1);
    await mg.close();
  });

  it("one message that cannot be written does not keep its batch from being written", async () => {
    const memory = createMemoryStore();
    const store = wrap(memory, {
      settle: async (settles, at) => {
        if (settles.some(({ settlement }) => settlement.kind === "dead")) throw new Error("22021: invalid byte sequence");
        return memory.settle(settles, at);
      },
    });
    const t = topic<number>("a/t", { sink: (n) => (n === 13 ? { kind: "reject", code: "x", error: "x" } : undefined) });
    const { mg, count, of } = await setUp([t], { store });
    mg.work();
    await mg.enqueueMany(
      t,
      Array.from({ length: 40 }, (_, payload) => ({ payload })),
    );
    await until(async () => (await count("delivered")) === 39);
    await until(() => of("claim_lost").length === 1);
    await mg.close();
  });

  it("claims fail: no hot loop, no attempt used, no unhandled rejection, and it goes on when the store is back (fault 17)", async () => {
    const clock = fastClock(5);
    let broken: boolean = true;
    const memory = createMemoryStore({ clock });
    const claims = failing(memory, "claim", () => (broken ? down() : null));
    const { store, counter } = failing(claims.store, "lanes", () => (broken ? down() : null));
    const t = topic("a/t", { sink: () => undefined });
    const { mg, count, of } = await setUp([t], { clock, store });
    const worker = mg.work();
    const ids = await mg.enqueueMany(
      t,
      Array.from({ length: 10 }, () => ({ payload: 0 })),
    );
    await pause(600); // three seconds of its time
    expect(counter.calls + claims.counter.calls).toBeLessThan(15);
    expect(worker.status().storeFailures).toBeGreaterThan(1);
    expect(of("store_error").length).toBeGreaterThan(1);
    broken = false;
    await until(async () => (await count("delivered")) === 10);
    for (const { id } of ids) expect((await store.get(id))?.attempts).toBe(1);
    await mg.close();
  });

  it("stopping while the store is down ends in bounded time", async () => {
    const clock = fastClock(20);
    let broken: boolean = false;
    const memory = createMemoryStore({ clock });
    const { store } = failing(memory, "settle", () => (broken ? down() : null));
    const t = topic("a/t", { sink: () => pause(5) });
    const { mg } = await setUp([t], { clock, store, sharedStore: true });
    const worker = mg.work();
    await mg.enqueueMany(
      t,
      Array.from({ length: 10 }, () => ({ payload: 0 })),
    );
    await until(() => worker.status().running > 0);
    broken = true;
    const start = performance.now();
    await worker.stop({ drainMs: 1_000 });
    expect(performance.now() - start).toBeLessThan(5_000);
    await mg.close();
  });

  it("stops claiming while outcomes pile up unwritten (I10)", async () => {
    let broken: boolean = true;
    const memory = createMemoryStore();
    const { store } = failing(memory, "settle", () => (broken ? down() : null));
    let delivered = 0;
    const t = topic("a/t", { sink: () => void delivered++ });
    const { mg, count } = await setUp([t], { store });
    for (let i = 0; i < 12; i++)
      await mg.enqueueMany(
        t,
        Array.from({ length: 1_000 }, () => ({ payload: 0 })),
      );
    mg.work();
    await pause(500);
    expect(delivered).toBeLessThan(8_000);
    broken = false;
    await until(async () => (await count("delivered")) === 12_000, 20_000);
    expect(delivered).toBe(12_000);
    await mg.close();
  });
});
