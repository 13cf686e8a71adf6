import { describe, expect, it } from "vitest";
import { topic } from "../../../src/index.ts";
import { createMemoryStore } from "../../../src/store/memory/memory-store.ts";
import { fastClock, pause, setUp, until, wrap } from "./support.ts";

const batch = (count: number, tenantId: string | undefined) => Array.from({ length: count }, () => ({ payload: 0, tenantId }));

describe("fairness (DX-6)", () => {
  it("serves a small tenant within a few claims while another floods with 20,000", async () => {
    let served = 0;
    const waits: number[] = [];
    const shared = topic<number>("a/shared", {
      sink: (since, { tenantId }) => {
        served++;
        if (tenantId === "b") waits.push(served - since);
      },
    });
    const { mg, count } = await setUp([shared]);
    for (let i = 0; i < 20; i++) await mg.enqueueMany(shared, batch(1_000, "a"));
    mg.work();
    while (waits.length < 20) {
      const before = waits.length;
      await mg.enqueue(shared, served, { tenantId: "b" });
      await until(() => waits.length > before);
      if (served >= 19_000) break;
    }
    // Behind the backlog each would wait for 20,000; here for what two overlapping claims hold.
    expect(waits.length).toBeGreaterThanOrEqual(3);
    expect(Math.max(...waits)).toBeLessThan(4_000);
    await until(async () => (await count("delivered")) >= 20_000, 20_000);
    await mg.close();
  });

  it("N16: 3,000 tenants of a paused topic, all due, hold up nobody else", async () => {
    const arrived = new Set<number>();
    const still = topic<number>("a/still", { sink: () => {} });
    const well = topic<number>("a/well", { sink: (n) => void arrived.add(n) });
    const { mg, store } = await setUp([still, well]);
    await store.topics.pause("a/still", true);
    for (let at = 0; at < 3_000; at += 1_000) {
      await mg.enqueueMany(
        still,
        Array.from({ length: 1_000 }, (_, i) => ({ payload: 0, tenantId: `t${at + i}` })),
      );
    }
    mg.work();
    await mg.enqueue(well, 0);
    await until(() => arrived.has(0));
    await pause(2_000);
    const waits: number[] = [];
    for (let n = 1; n <= 9; n++) {
      const began = performance.now();
      await mg.enqueue(well, n);
      await until(() => arrived.has(n));
      waits.push(performance.now() - began);
      await pause(50);
    }
    // Each waited for one to three seconds.
    expect(waits.sort((a, b) => a - b)[4]).toBeLessThan(700);
    await mg.close({ drainMs: 0 });
  }, 60_000);

  it("with slow attempts a new tenant gets the next free slots", async () => {
    const order: string[] = [];
    const slow = topic("a/slow", {
      sink: async (_, { tenantId }) => {
        order.push(tenantId ?? "");
        await pause(20);
      },
    });
    const { mg } = await setUp([slow], { concurrency: 4 });
    await mg.enqueueMany(slow, batch(200, "a"));
    mg.work();
    await until(() => order.length >= 8);
    const before = order.length;
    await mg.enqueue(slow, 0, { tenantId: "b" });
    await until(() => order.includes("b"));
    expect(order.indexOf("b") - before).toBeLessThan(60);
    await mg.close({ drainMs: 100 });
  });

  it("one topic of twenty that takes ten seconds does not slow the others (fault 34)", async () => {
    const clock = fastClock(10);
    const fast: number[] = [];
    const hog = topic("z/hog", { sink: () => pause(1_000) });
    const others = Array.from({ length: 19 }, (_, i) =>
      topic<number>(`a/t${i}`, {
        sink: async (sentMs) => {
          await pause(1);
          fast.push(performance.now() - sentMs);
        },
      }),
    );
    const { mg } = await setUp([hog, ...others], { clock, concurrency: 20 });
    mg.work();
    await mg.enqueueMany(hog, batch(500, undefined));
    await pause(100);
    for (let i = 0; i < 10; i++) {
      await Promise.all(others.map((one) => mg.enqueue(one, performance.now())));
      await pause(10);
    }
    await until(() => fast.length === 190);
    fast.sort((a, b) => a - b);
    expect(fast[Math.floor(fast.length * 0.95)]).toBeLessThan(600);
    await mg.close({ drainMs: 0 });
  });
});

describe("a slow topic beside topics that have messages only now and then", () => {
  it("has all slots while they have none, makes room while they have some, and has all slots again", async () => {
    const ends: (() => void)[] = [];
    const slow = topic("a/slow", { sink: () => new Promise<void>((resolve) => ends.push(resolve)) });
    const seldom = { kind: "function", onDemand: true, deliver: () => ({ kind: "delivered" as const }) };
    const now = topic("b/now", { sink: seldom });
    // As the recovery engine's: served, and without a message most of the time.
    const idle = (["c/evaluate", "c/notify"] as const).map((name) => topic(name, { sink: seldom }));
    const { mg, count } = await setUp([slow, now, ...idle], { concurrency: 16 });
    mg.work();
    await mg.enqueueMany(slow, batch(64, undefined));
    await until(() => ends.length === 16);
    await mg.enqueue(now, 0);
    await pause(50);
    expect(await count("delivered")).toBe(0);
    ends[0]?.();
    await until(async () => (await count("delivered")) === 2);
    await until(() => ends.length === 17);
    await mg.close({ drainMs: 0 });
  });
});

describe("limits", () => {
  it("respects concurrency overall, per topic and per tenant, at every moment", async () => {
    let now = 0;
    let most = 0;
    const perTenant = new Map<string, number>();
    let mostOfTenant = 0;
    const run =
      (limited: boolean) =>
      async (_: unknown, { tenantId }: { tenantId: string | null }) => {
        now++;
        most = Math.max(most, now);
        const of = (perTenant.get(tenantId ?? "") ?? 0) + 1;
        if (limited) {
          perTenant.set(tenantId ?? "", of);
          mostOfTenant = Math.max(mostOfTenant, of);
        }
        await pause(3);
        now--;
        if (limited) perTenant.set(tenantId ?? "", (perTenant.get(tenantId ?? "") ?? 0) - 1);
      };
    let inTopic = 0;
    let mostInTopic = 0;
    const capped = topic("a/capped", {
      concurrency: 5,
      sink: async () => {
        mostInTopic = Math.max(mostInTopic, ++inTopic);
        await run(false)(0, { tenantId: null });
        inTopic--;
      },
    });
    const tenants = topic("a/tenants", { tenantConcurrency: 2, sink: run(true) });
    const { mg, count } = await setUp([capped, tenants], { concurrency: 12 });
    await mg.enqueueMany(capped, batch(60, undefined));
    for (const tenant of ["x", "y", "z"]) await mg.enqueueMany(tenants, batch(40, tenant));
    mg.work();
    await until(async () => (await count("delivered")) === 180);
    expect(most).toBeLessThanOrEqual(12);
    expect(mostInTopic).toBe(5);
    expect(mostOfTenant).toBe(2);
    await mg.close();
  });

  it("works only on the topics it was given, and on none without a sink here", async () => {
    const seen: string[] = [];
    const sink = (_: unknown, { topic: name }: { topic: string }) => void seen.push(name);
    const all = (["audit/a", "audit/b", "billing/a"] as const).map((name) => topic(name, { sink }));
    const elsewhere = topic("audit/elsewhere");
    const { mg, count } = await setUp([...all, elsewhere]);
    for (const one of [...all, elsewhere]) await mg.enqueue(one, 1);
    mg.work({ topics: ["audit/*"] });
    await until(async () => (await count("delivered")) === 2);
    await pause(50);
    expect(seen.sort((a, b) => a.localeCompare(b))).toEqual(["audit/a", "audit/b"]);
    expect(await count("pending")).toBe(2);
    await mg.close();
  });

  it("holds no more payload bytes than the limit, however many messages wait (fault 8)", async () => {
    const clock = fastClock(1);
    const memory = createMemoryStore({ clock });
    const asked: number[] = [];
    const store = wrap(memory, {
      claim: async (request) => {
        asked.push(request.bytesMax ?? 0);
        return memory.claim(request);
      },
    });
    let held = 0;
    let most = 0;
    const big = topic<string>("a/big", {
      sink: async () => {
        held++;
        most = Math.max(most, held);
        await pause(5);
        held--;
      },
    });
    const { mg, count } = await setUp([big], { store, concurrency: 200 });
    const payload = "x".repeat(1_000_000);
    for (let i = 0; i < 60; i++) await mg.enqueue(big, payload);
    mg.work();
    await until(async () => (await count("delivered")) === 60, 20_000);
    expect(most).toBeLessThanOrEqual(18);
    expect(Math.max(...asked)).toBeLessThanOrEqual(8 * 1_048_576);
    await mg.close();
  });
});

describe("priority", () => {
  it("goes first, and the low one still gets its share and its turn", async () => {
    const order: number[] = [];
    const ranked = topic("a/ranked", {
      sink: async (priority) => {
        order.push(priority as number);
        await pause(1);
      },
    });
    const { mg, count } = await setUp([ranked], { concurrency: 4 });
    for (const priority of [-50, 50]) {
      await mg.enqueueMany(
        ranked,
        Array.from({ length: 200 }, () => ({ payload: priority, priority })),
      );
    }
    mg.work();
    await until(async () => (await count("delivered")) === 400);
    const first = order.slice(0, 200);
    const high = first.filter((priority) => priority === 50).length;
    expect(high).toBeGreaterThan(130);
    expect(high).toBeLessThan(200);
    await mg.close();
  });
});

describe("ordering", () => {
  it("delivers the messages of one key in order, one at a time, also over retries", async () => {
    const seen = new Map<string, number[]>();
    const busy = new Set<string>();
    let overlaps = 0;
    const tries = new Map<string, number>();
    const ordered = topic<{ key: string; n: number }>("a/ordered", {
      retry: { baseMs: 1, maxMs: 2 },
      sink: async ({ key, n }, { id }) => {
        if (busy.has(key)) overlaps++;
        busy.add(key);
        await pause(Math.random() * 2);
        busy.delete(key);
        const tried = (tries.get(id) ?? 0) + 1;
        tries.set(id, tried);
        if (n % 7 === 3 && key < "k4" && tried === 1) throw new Error("once");
        const list = seen.get(key) ?? [];
        list.push(n);
        seen.set(key, list);
      },
    });
    const { mg, count } = await setUp([ordered]);
    mg.work();
    mg.work();
    for (let n = 0; n < 15; n++) {
      const messages = Array.from({ length: 10 }, (_, k) => ({ payload: { key: `k${k}`, n }, orderingKey: `k${k}` }));
      await mg.enqueueMany(ordered, messages);
    }
    await until(async () => (await count("delivered")) === 150, 20_000);
    expect(overlaps).toBe(0);
    for (const list of seen.values()) expect(list).toEqual(Array.from({ length: 15 }, (_, n) => n));
    await mg.close();
  });

  it("a dead head releases its key, except in strict", async () => {
    const seen: string[] = [];
    const sink = (n: unknown, { topic: name }: { topic: string }) => {
      if (n === 0) return { kind: "reject", code: "bad", error: "bad" };
      seen.push(`${name} ${n}`);
    };
    const lax = topic("a/lax", { sink });
    const strict = topic("a/strict", { sink, ordering: "strict" });
    const { mg, count } = await setUp([lax, strict]);
    for (const one of [lax, strict]) {
      await mg.enqueueMany(one, [
        { payload: 0, orderingKey: "k" },
        { payload: 1, orderingKey: "k" },
        { payload: 2, orderingKey: "other" },
      ]);
    }
    mg.work();
    await until(async () => (await count("dead")) === 2 && (await count("delivered")) === 3);
    await pause(150);
    expect(seen.sort((a, b) => a.localeCompare(b))).toEqual(["a/lax 1", "a/lax 2", "a/strict 2"]);
    expect(await count("pending")).toBe(1);
    await mg.close();
  });
});
