import { describe, expect, it } from "vitest";
import { createMakegood, createMemoryStore, type Makegood, type Store, type TopicOptions, topic } from "../../../src/index.ts";
import type { Clock } from "../../../src/platform/clock.ts";
import { fastClock, pause, until, wrap } from "./support.ts";

type Dying = { die: () => void };

/** A process on a shared store: when it dies, nothing it does reaches the store any more, and nothing answers it. */
async function startProcess(
  shared: Store,
  clock: Clock,
  options: Omit<TopicOptions, "sink">,
  handler: (n: number, process: Dying) => unknown,
) {
  let alive = true;
  const never = new Promise<never>(() => undefined);
  const methods = ["claim", "settle", "extend", "reclaim", "lanes", "idle", "lead", "prune"] as const;
  const store = wrap(
    shared,
    Object.fromEntries(
      methods.map((method) => [
        method,
        (...args: unknown[]) => (alive ? (shared[method] as (...given: unknown[]) => Promise<unknown>)(...args) : never),
      ]),
    ),
  );
  const process = {
    die: () => {
      alive = false;
    },
  };
  const t = topic<number>("a/t", { ...options, sink: (n) => (alive ? handler(n, process) : never) });
  const mg = await createMakegood({ store, clock, topics: [t], sharedStore: true, concurrency: 20 });
  mg.work();
  return { mg, t, ...process };
}

describe("a crash (faults 1, 2 and 7)", () => {
  it("what was claimed comes back after its lease, with the same key, and is delivered", async () => {
    const clock = fastClock(10);
    const store = createMemoryStore({ clock });
    const keys: string[] = [];
    const first = await startProcess(store, clock, { leaseMs: 1_000 }, () => new Promise(() => undefined));
    await first.mg.enqueueMany(
      first.t,
      Array.from({ length: 30 }, (_, n) => ({ payload: n, key: `k${n}` })),
    );
    await until(async () => (await store.counts({ delivered: true })).some(({ status }) => status === "processing"));
    first.die();
    const second = await startProcess(store, clock, { leaseMs: 1_000 }, (n) => void keys.push(`k${n}`));
    await until(async () => (await store.counts({ delivered: true })).every(({ status }) => status === "delivered"));
    expect(new Set(keys).size).toBe(30);
    await second.mg.close();
  });

  it("a message that kills its worker ends dead after its own attempts, and its batch mates are not charged", async () => {
    const clock = fastClock(5);
    const store = createMemoryStore({ clock });
    let deaths = 0;
    let current: { mg: Makegood } | undefined;
    const dead: Makegood[] = [];
    const boot = async (): Promise<void> => {
      current = await startProcess(
        store,
        clock,
        { leaseMs: 2_000, retry: { attemptsMax: 3, baseMs: 1, maxMs: 1 } },
        async (n, process) => {
          await pause(1);
          if (n !== 13) return;
          deaths++;
          process.die();
          if (current) dead.push(current.mg);
          setTimeout(() => void boot(), 5);
          await new Promise(() => undefined);
        },
      );
    };
    await boot();
    const ids = await current!.mg.enqueueMany(
      "a/t",
      Array.from({ length: 60 }, (_, n) => ({ payload: n })),
    );
    const counts = async (status: string): Promise<number> =>
      (await store.counts({ delivered: true })).filter((row) => row.status === status).reduce((sum, row) => sum + row.count, 0);
    await until(async () => (await counts("dead")) === 1 && (await counts("delivered")) === 59, 25_000);
    const killer = ids[13]?.id ?? "";
    const { attempts } = await store.history(killer);
    expect(attempts.filter(({ counted }) => counted).map(({ outcome }) => outcome)).toEqual(["lost", "lost", "lost"]);
    expect(deaths).toBeLessThanOrEqual(6);
    for (const [n, { id }] of ids.entries()) {
      if (n === 13) continue;
      const view = await store.get(id);
      expect(view).toMatchObject({ status: "delivered", attempts: 1 });
    }
    await current!.mg.close();
  });
});
