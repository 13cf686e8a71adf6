/**
 * workOff(): everything that is due and may be attempted now, and then an end; what is held or due later is left, and what was done is told.
 */
import { describe, expect, it } from "vitest";
import { createMemoryStore, MakegoodError, topic } from "../../../src/index.ts";
import { setUp, wrap } from "./support.ts";

describe("workOff", () => {
  it("attempts what is due of the chosen topics and leaves what waits, is paused or is another's", async () => {
    const sink = (n: unknown) => {
      if (n === "bad") throw new Error("no");
    };
    const [mine, paused, other] = (["a/mine", "a/paused", "b/other"] as const).map((name) => topic(name, { sink }));
    const { mg, store, count } = await setUp([mine!, paused!, other!]);
    await store.topics.pause("a/paused", true);
    for (let i = 0; i < 120; i++) await mg.enqueue("a/mine", i);
    for (const name of ["a/mine", "a/paused", "b/other"] as const) await mg.enqueue(name, "bad");
    await mg.enqueue("a/mine", "later", { delayMs: 60_000 });
    expect(await mg.workOff({ topics: ["a/*"] })).toEqual({ attempts: 121, delivered: 120, dead: 0, error: null });
    expect([await count("delivered"), await count("pending")]).toEqual([120, 4]);
    expect(await mg.workOff({ topics: ["a/*"] })).toEqual({ attempts: 0, delivered: 0, dead: 0, error: null });
    await mg.close();
  });

  it("ends with what the store failed with, and never throws", async () => {
    const broken = () => Promise.reject(new MakegoodError("store_unavailable", "no lanes"));
    const { mg } = await setUp([topic("a/t", { sink: () => undefined })], {
      store: wrap(createMemoryStore(), { lanes: broken }),
    });
    expect(await mg.workOff()).toMatchObject({ attempts: 0, error: { code: "store_unavailable" } });
    await mg.close();
  });
});
