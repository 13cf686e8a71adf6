/** C8: `tick({ budgetMs })`, for processes that do not stay: bounded in time, nothing left claimed, and it says when to come again. */
import { describe, expect, it } from "vitest";
import { retry, topic } from "../../../src/index.ts";
import { createTestMakegood, enqueued } from "../../../src/testing/index.ts";
import { setUp } from "../delivery/support.ts";

const none = async ({ store }: Awaited<ReturnType<typeof setUp>>): Promise<number> =>
  (await store.counts()).filter(({ status }) => status === "processing").length;

describe("C8: tick", () => {
  it("does all that is due and says that nothing waits", async () => {
    const t = topic<number>("a/t", { sink: () => undefined });
    const scene = await setUp([t]);
    await scene.mg.enqueueMany(
      t,
      Array.from({ length: 500 }, (_, n) => ({ payload: n })),
    );
    const done = await scene.mg.tick({ budgetMs: 20_000 });
    expect(done).toEqual({ attempts: 500, delivered: 500, dead: 0, error: null, nextDueInMs: null });
    expect(await scene.mg.tick({ budgetMs: 200 })).toMatchObject({ attempts: 0, nextDueInMs: null });
    await scene.mg.close();
  });

  it("ends with its budget, gives back what it could not finish, and spends no attempt on it", async () => {
    const begun: number[] = [];
    const slow = topic<number>("a/slow", {
      // One listens to its signal and one does not.
      sink: (n, _delivery, { signal }) =>
        new Promise((resolve) => {
          begun.push(n);
          if (n % 2 === 0) signal.addEventListener("abort", () => resolve(retry("stopped")));
        }),
    });
    const scene = await setUp([slow], { concurrency: 4 });
    await scene.mg.enqueueMany(
      slow,
      Array.from({ length: 20 }, (_, n) => ({ payload: n })),
    );
    const started = performance.now();
    const done = await scene.mg.tick({ budgetMs: 2_000 });
    expect(performance.now() - started).toBeLessThan(2_300);
    expect(begun).toHaveLength(4);
    expect(done).toMatchObject({ delivered: 0, dead: 0, error: null, nextDueInMs: 0 });
    expect(await none(scene), "no claim is left behind").toBe(0);
    const views = await enqueued(scene.mg, slow);
    expect(views.map(({ status, attempts }) => [status, attempts])).toEqual(Array(20).fill(["pending", 0]));
    await scene.mg.close();
  });

  it("says when the next is due: a delay, a retry, a breaker; not what is paused or served elsewhere", async () => {
    const t = topic<number>("a/t", { sink: () => retry("no", { afterMs: 90_000 }) });
    const elsewhere = topic<number>("a/elsewhere");
    await using test = await createTestMakegood({ topics: [t, elsewhere] });
    await test.mg.enqueue(elsewhere, 1);
    expect(await test.mg.tick({ budgetMs: 500 })).toMatchObject({ attempts: 0, error: null, nextDueInMs: null });
    await test.mg.enqueue(t, 1, { delayMs: 60_000 });
    expect(await test.mg.tick({ budgetMs: 500 })).toMatchObject({ attempts: 0, nextDueInMs: 60_000 });
    await test.clock.advance(60_000);
    const { attempts, nextDueInMs } = await test.mg.tick({ budgetMs: 500 });
    expect([attempts, nextDueInMs]).toEqual([1, expect.any(Number)]);
    expect(nextDueInMs).toBeGreaterThanOrEqual(90_000);
    await test.mg.pause(t);
    expect(await test.mg.tick({ budgetMs: 500 })).toMatchObject({ nextDueInMs: null });
  });

  it("ends with its budget although the store does not answer, and says so", async () => {
    const t = topic<number>("a/t", { sink: () => undefined });
    const hanging = await setUp([t]);
    const store = hanging.store as { lanes: unknown };
    store.lanes = () => new Promise(() => {});
    const started = performance.now();
    expect(await hanging.mg.tick({ budgetMs: 600 })).toMatchObject({ attempts: 0, error: { code: "store_unavailable" } });
    expect(performance.now() - started).toBeLessThan(900);
    await hanging.mg.close();
  });

  it("workOff leaves to others, too, what only they deliver", async () => {
    const [here, elsewhere] = [topic<number>("a/here", { sink: () => undefined }), topic<number>("a/elsewhere")];
    const { mg } = await setUp([here, elsewhere]);
    await mg.enqueue(elsewhere, 1);
    await mg.enqueue(here, 1);
    const started = performance.now();
    expect(await mg.workOff({ timeoutMs: 20_000 })).toEqual({ attempts: 1, delivered: 1, dead: 0, error: null });
    expect(performance.now() - started).toBeLessThan(10_000);
    await mg.close();
  });

  it("refuses a budget that is none", async () => {
    const { mg } = await setUp([]);
    for (const budgetMs of [0, -1, Number.NaN, undefined as never]) {
      await expect(mg.tick({ budgetMs })).rejects.toMatchObject({ code: "invalid_config" });
    }
    await mg.close();
  });
});
