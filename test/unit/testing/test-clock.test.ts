/** C8: the clock to move: what is due, retries, leases and breakers follow it, and nothing else has to wait for it. */
import { describe, expect, it } from "vitest";
import { retry, topic } from "../../../src/index.ts";
import { createTestClock, createTestMakegood, enqueued } from "../../../src/testing/index.ts";

const HOUR_MS = 3_600_000;

describe("C8: a clock to move", () => {
  it("stands still, and runs what falls due while it is moved at its own moment, in order", async () => {
    const clock = createTestClock({ startMs: 1_000 });
    const seen: [string, number][] = [];
    clock.after(5_000_000, () => seen.push(["late", clock.wallMs()]));
    clock.after(2_000_000, () => {
      seen.push(["early", clock.wallMs()]);
      clock.after(1_000_000, () => seen.push(["follows", clock.wallMs()]));
    });
    clock.after(1_500_000, () => seen.push(["cancelled", 0])).cancel();
    expect(clock.wallMs()).toBe(1_000);
    await clock.advance(4_000_000);
    expect(clock.wallMs()).toBe(4_001_000);
    expect(seen.map(([name]) => name)).toEqual(["early", "follows"]);
    for (const [at, moment] of [2_001_000, 3_001_000].entries()) {
      expect(Math.abs((seen[at]?.[1] ?? 0) - moment), "the real time that passes counts, too").toBeLessThan(1_000);
    }
    await clock.advance(1_000_000);
    expect(seen.map(([name]) => name)).toEqual(["early", "follows", "late"]);
    await expect(clock.advance(-1)).rejects.toThrow(RangeError);
  });

  it("timers also run by the real time, so that nothing under test hangs", async () => {
    const clock = createTestClock();
    await new Promise<void>((resolve) => clock.after(5, resolve));
    expect(clock.wallMs()).toBe(Date.UTC(2026, 0, 1));
  });

  it("what is delayed is due when it has been moved so far", async () => {
    const later = topic<number>("a/later", { sink: () => undefined });
    await using test = await createTestMakegood({ topics: [later] });
    await test.mg.enqueue(later, 1, { delayMs: HOUR_MS });
    expect(await test.drain()).toEqual([]);
    await test.clock.advance(HOUR_MS - 1);
    expect(await test.drain()).toEqual([]);
    await test.clock.advance(1);
    expect(await test.drain()).toMatchObject([{ topic: "a/later", status: "delivered" }]);
  });

  it("retries follow it, to the dead letter", async () => {
    const bad = topic("a/bad", {
      sink: () => retry("no"),
      retry: { policy: "table", tableMs: [60_000, 120_000], attemptsMax: 3 },
    });
    await using test = await createTestMakegood({ topics: [bad] });
    await test.mg.enqueue(bad, 1);
    expect(await test.drain()).toMatchObject([{ attempt: 1, status: "pending", error: "no" }]);
    await test.clock.advance(60_000);
    expect(await test.drain()).toMatchObject([{ attempt: 2, status: "pending" }]);
    await test.clock.advance(60_000);
    expect(await test.drain()).toEqual([]);
    await test.clock.advance(60_000);
    expect(await test.drain()).toMatchObject([{ attempt: 3, status: "dead" }]);
    expect(await enqueued(test.mg, bad)).toMatchObject([{ status: "dead", attempts: 3, lastError: "no" }]);
  });

  it("a lease ends by it: what a dead worker held is attempted again", async () => {
    const held = topic<number>("a/held", { sink: () => undefined });
    await using test = await createTestMakegood({ topics: [held] });
    const { id } = await test.mg.enqueue(held, 1);
    const [lane] = await test.store.lanes();
    await test.store.claim({ owner: "dead", leaseMs: 30_000, lanes: [{ lane: lane?.lane ?? "", limit: 1 }] });
    test.mg.work();
    await test.clock.advance(29_000);
    expect((await test.mg.get(id))?.status).toBe("processing");
    await test.clock.advance(60_000);
    expect(await test.mg.get(id)).toMatchObject({ status: "delivered" });
  });

  it("a breaker that opened may be probed when it has been moved", async () => {
    const state: { down: boolean } = { down: true };
    const flaky = topic<number>("a/flaky", { sink: () => (state.down ? retry("down") : undefined), retry: { attemptsMax: 50 } });
    await using test = await createTestMakegood({ topics: [flaky], concurrency: 1 });
    for (let n = 0; n < 8; n++) await test.mg.enqueue(flaky, n);
    await test.drain();
    expect((await test.store.topics.get("a/flaky"))?.breaker.state).toBe("open");
    state.down = false;
    expect(await test.drain()).toEqual([]);
    for (let n = 0; n < 30; n++) {
      await test.clock.advance(10_000);
      await test.drain();
    }
    expect((await enqueued(test.mg, flaky)).map(({ status }) => status)).toEqual(Array(8).fill("delivered"));
    expect((await test.store.topics.get("a/flaky"))?.breaker.state).toBe("closed");
  });

  it("what a rate holds back is told, with what to do", async () => {
    const slow = topic<number>("a/slow", { sink: () => undefined, ratePerSecond: 1 });
    await using test = await createTestMakegood({ topics: [slow] });
    for (let n = 0; n < 3; n++) await test.mg.enqueue(slow, n);
    await expect(test.drain({ timeoutMs: 300 })).rejects.toThrow(/move the clock on/);
    await test.clock.advance(60_000);
    await test.drain({ timeoutMs: 300 }).catch(() => undefined);
    expect((await enqueued(test.mg, slow)).filter(({ status }) => status === "delivered").length).toBeGreaterThan(1);
  });
});
