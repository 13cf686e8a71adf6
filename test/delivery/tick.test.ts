/**
 * C8: `tick` on the stores that keep claims outside of the process: what it gave back is there for another process at once.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMakegood, type Makegood, topic } from "../../src/index.ts";
import { drain, enqueued } from "../../src/testing/index.ts";
import { STAGES, type Stage } from "../support/stages.ts";

describe.each(Object.keys(STAGES))("C8: tick on %s", (name) => {
  let stage: Stage;
  let mg: Makegood;
  let slowly = true;
  const t = topic<number>("tick/t", {
    sink: (_payload, _delivery, { signal }) =>
      slowly ? new Promise((_, fail) => signal.addEventListener("abort", () => fail(new Error("stopped")))) : undefined,
  });

  beforeAll(async () => {
    stage = await (STAGES[name] as () => Promise<Stage>)();
    mg = await createMakegood({ store: stage.store, topics: [t], concurrency: 5, recovery: false });
  });
  afterAll(async () => {
    await mg.close();
    await stage.drop();
  });

  it("leaves no claim behind, spends no attempt, and says that there is more to do", async () => {
    await mg.enqueueMany(
      t,
      Array.from({ length: 30 }, (_, n) => ({ payload: n })),
    );
    const started = performance.now();
    expect(await mg.tick({ budgetMs: 2_500 })).toMatchObject({ delivered: 0, dead: 0, error: null, nextDueInMs: 0 });
    expect(performance.now() - started).toBeLessThan(2_500 + 500);
    const counts = await mg.store.counts();
    expect(counts.map(({ status, count }) => [status, count])).toEqual([["pending", 30]]);
    expect((await enqueued(mg, t)).every(({ attempts }) => attempts === 0)).toBe(true);
    const another = await createMakegood({ store: stage.store, sharedStore: true, topics: [t], recovery: false });
    slowly = false;
    expect(await drain(another, { timeoutMs: 20_000 })).toHaveLength(30);
    await another.close();
  });

  it("says when the next is due, and does nothing meanwhile", async () => {
    await mg.enqueue(t, 31, { delayMs: 60_000 });
    const { attempts, nextDueInMs } = await mg.tick({ budgetMs: 1_000 });
    expect(attempts).toBe(0);
    expect(nextDueInMs).toBeGreaterThan(50_000);
    expect(nextDueInMs).toBeLessThanOrEqual(60_000);
  });
});
