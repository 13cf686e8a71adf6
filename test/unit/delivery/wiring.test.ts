import { describe, expect, it } from "vitest";
import { createMemoryStore, topic } from "../../../src/index.ts";
import { fastClock, setUp, until, wrap } from "./support.ts";

describe("wiring (DX-10: what is built is started)", () => {
  it("work() starts the dispatcher and every maintenance job, and stopping ends all of it", async () => {
    const clock = fastClock(10);
    const memory = createMemoryStore({ clock });
    const calls = new Map<string, number>();
    const counted = (method: string): void => void calls.set(method, (calls.get(method) ?? 0) + 1);
    const methods = ["lanes", "claim", "settle", "reclaim", "prune", "lead", "idle"] as const;
    const store = wrap(
      memory,
      Object.fromEntries(
        methods.map((method) => [
          method,
          (...args: unknown[]) => {
            counted(method);
            return (memory[method] as (...given: unknown[]) => Promise<unknown>)(...args);
          },
        ]),
      ),
    );
    const t = topic("a/t", { sink: () => undefined });
    const { mg, of, count } = await setUp([t], { store, clock, keptMs: 1_000 });
    const started = () => of("lifecycle").flatMap(({ what, detail }) => (what === "maintenance_started" ? [detail] : []));
    expect(started()).toEqual([]);
    const worker = mg.work();
    expect(started()).toEqual([{ jobs: ["reclaim-expired"] }, { jobs: ["prune-settled"] }]);
    await mg.enqueue(t, 0);
    await until(() => methods.every((method) => (calls.get(method) ?? 0) > 0));
    // Retention: delivered, kept for its second, gone.
    await until(async () => (await count("delivered")) === 0 && of("pruned").length > 0);
    await worker.stop();
    calls.clear();
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect([...calls]).toEqual([]);
    await mg.close();
  });

  it("a second worker shares maintenance; without it retention is left to others, lost leases are not", async () => {
    const { mg, of } = await setUp([topic("a/t", { sink: () => undefined })]);
    const jobs = () => of("lifecycle").filter(({ what }) => what === "maintenance_started").length;
    const first = mg.work({ maintenance: false });
    expect(jobs()).toBe(1);
    mg.work();
    expect(jobs()).toBe(2);
    mg.work();
    expect(jobs()).toBe(2);
    await first.stop();
    await mg.close();
  });

  it("a worker that comes after another was stopped starts every job again", async () => {
    const { mg, of } = await setUp([topic("a/t", { sink: () => undefined })]);
    const jobs = () => of("lifecycle").filter(({ what }) => what === "maintenance_started").length;
    for (const expected of [2, 4, 6]) {
      const worker = mg.work();
      expect(jobs()).toBe(expected);
      await worker.stop();
    }
    await mg.close();
  });

  it("refuses a configuration that cannot work, all reasons at once", async () => {
    const t = topic("a/t", { sink: () => undefined });
    await expect(setUp([t, t], { concurrency: 0, pollMs: -1 })).rejects.toThrow(/concurrency.*pollMs.*declared twice/);
    await expect(setUp([], { sinkAllow: ["nonsense"] })).rejects.toThrow(/CIDR/);
  });

  it("a topic that only sends does not replace what another process declared", async () => {
    const store = createMemoryStore();
    const serving = await setUp([topic("a/t", { sink: () => undefined, concurrency: 7 })], { store, sharedStore: true });
    const sending = await setUp([topic("a/t")], { store, sharedStore: true });
    expect((await store.topics.get("a/t"))?.concurrency).toBe(7);
    serving.mg.work();
    await sending.mg.enqueue("a/t", 1);
    await until(async () => (await serving.count("delivered")) === 1);
    await sending.mg.close();
    await serving.mg.close();
  });
});
