/**
 * Rates and totals as one worker and deliver() keep them: tenants by themselves, what waits spends nothing, and a topic without such a limit
 * never asks the store.
 */
import { afterEach, describe, expect, it } from "vitest";
import { createMemoryStore, topic } from "../../../src/index.ts";
import type { Store } from "../../../src/store/store.ts";
import { pause, setUp, until } from "./support.ts";

const made: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of made.splice(0)) await one.close();
});

function counted(store: Store): { calls: string[] } {
  const calls: string[] = [];
  const { topics } = store;
  const { allot, occupy } = topics;
  Object.assign(topics, {
    allot: (...args: Parameters<typeof allot>) => {
      calls.push("allot");
      return allot(...args);
    },
    occupy: (...args: Parameters<typeof occupy>) => {
      calls.push("occupy");
      return occupy(...args);
    },
  });
  return { calls };
}

describe("a worker", () => {
  it("begins no more than the rate and its burst, and what waits spends no attempt", async () => {
    const begun: number[] = [];
    const attempts = new Set<number>();
    const slow = topic("rate/plain", {
      ratePerSecond: 20,
      sink: (_payload, delivery) => {
        begun.push(performance.now());
        attempts.add(delivery.attempt);
      },
    });
    const { mg, count } = await setUp([slow]);
    made.push(mg);
    await mg.enqueueMany(
      "rate/plain",
      Array.from({ length: 60 }, (_, n) => ({ payload: n })),
    );
    const beganMs = performance.now();
    mg.work();
    await until(async () => (await count("delivered")) === 60, 20_000);
    // 20 at once, 40 more at 20 a second.
    expect(performance.now() - beganMs).toBeGreaterThan(1_500);
    expect(begun.filter((at) => at - (begun[0] as number) < 500).length).toBeLessThanOrEqual(20 + 20);
    expect(attempts).toEqual(new Set([1]));
  });

  it("holds a tenant to its own rate, and the others not", async () => {
    const begun = new Map<string | null, number>();
    const each = topic("rate/tenants", {
      tenantRatePerSecond: 2,
      sink: (_payload, { tenantId }) => void begun.set(tenantId, (begun.get(tenantId) ?? 0) + 1),
    });
    const { mg } = await setUp([each]);
    made.push(mg);
    for (const tenantId of ["a", "b", null]) {
      await mg.enqueueMany(
        "rate/tenants",
        Array.from({ length: 40 }, () => ({ payload: 1, ...(tenantId ? { tenantId } : {}) })),
      );
    }
    const startedMs = performance.now();
    mg.work();
    await until(() => begun.size === 3 && [...begun.values()].every((count) => count >= 2));
    await pause(1_000);
    const lasted = (performance.now() - startedMs) / 1_000;
    // Its burst, two a second, and what is allotted ahead.
    for (const count of begun.values()) expect(count).toBeLessThanOrEqual(2 + 2 * lasted + 2);
  });

  it("asks the store for nothing where no limit is set", async () => {
    const store = createMemoryStore();
    const { calls } = counted(store);
    const { mg, count } = await setUp([topic("rate/none", { sink: () => {} })], { store });
    made.push(mg);
    await mg.enqueueMany(
      "rate/none",
      Array.from({ length: 200 }, (_, n) => ({ payload: n })),
    );
    mg.work();
    await until(async () => (await count("delivered")) === 200);
    expect((await mg.deliver("rate/none", 1)).kind).toBe("delivered");
    expect(calls).toEqual([]);
  });

  it("two of them on one store never have more attempts at once than the total", async () => {
    let open = 0;
    let most = 0;
    const bounded = topic("total/two", {
      concurrencyTotal: 3,
      sink: async () => {
        most = Math.max(most, ++open);
        await pause(20);
        open--;
      },
    });
    const { mg, count } = await setUp([bounded]);
    made.push(mg);
    await mg.enqueueMany(
      "total/two",
      Array.from({ length: 60 }, (_, n) => ({ payload: n })),
    );
    const first = mg.work();
    mg.work();
    await until(async () => (await count("delivered")) > 20, 20_000);
    // What a stopped one had is free at once.
    await first.stop();
    await until(async () => (await count("delivered")) === 60, 20_000);
    expect(most).toBe(3);
  });
});

describe("deliver()", () => {
  it("tries at once as long as the rate allows, and queues the rest with the reason", async () => {
    const { mg } = await setUp([topic("rate/direct", { sink: () => {}, ratePerSecond: 2 })]);
    made.push(mg);
    const kinds: string[] = [];
    const next = () => mg.deliver("rate/direct", kinds.length);
    let result = await next();
    for (; result.kind === "delivered" && kinds.length < 100; result = await next()) kinds.push(result.kind);
    // Two at once; where half a second passes meanwhile, one more.
    expect(kinds.length).toBeGreaterThanOrEqual(2);
    expect(result).toMatchObject({ kind: "queued", code: "rate_limited", tries: 0, stored: "primary" });
  });

  it("takes a place like any attempt, and gives it back", async () => {
    let go = (): void => {};
    const first = new Promise<void>((resolve) => {
      go = resolve;
    });
    let begun = 0;
    const sink = () => {
      begun++;
      return first;
    };
    const { mg } = await setUp([topic("total/direct", { sink, concurrencyTotal: 1 })]);
    made.push(mg);
    const one = mg.deliver("total/direct", 1);
    await until(() => begun === 1);
    expect(await mg.deliver("total/direct", 2)).toMatchObject({ kind: "queued", code: "concurrency_limited", tries: 0 });
    go();
    expect((await one).kind).toBe("delivered");
    await until(async () => (await mg.deliver("total/direct", 3)).kind === "delivered");
  });
});
