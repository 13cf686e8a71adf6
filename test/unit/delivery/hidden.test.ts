import { describe, expect, it } from "vitest";
import { type Outcome, topic } from "../../../src/index.ts";
import { pause, setUp, until } from "./support.ts";

const DOWN: Outcome = { kind: "retry", code: "http_503", error: "down" };

describe("what is held hides nobody", () => {
  it.each(["breaker", "paused"] as const)(
    "N1: 3,000 tenants of a topic that is held (%s) do not keep another topic's messages from being seen",
    async (by) => {
      const down = topic("a/down", { sink: { kind: "http", deliver: async () => DOWN } });
      const well = topic("a/well", { sink: { kind: "http", deliver: async () => ({ kind: "delivered" }) } });
      const { mg, store, count } = await setUp([down, well]);
      const some = Array.from({ length: 3_000 }, (_, n) => ({ payload: n, tenantId: `t${n}` }));
      for (let n = 0; n < 3_000; n += 1_000) await mg.enqueueMany(down, some.slice(n, n + 1_000));
      if (by === "paused") await store.topics.pause("a/down", true);
      mg.work();
      if (by === "breaker") await until(async () => (await store.topics.get("a/down"))?.breaker.state !== "closed");
      await pause(1_500);
      const startedMs = performance.now();
      for (let n = 0; n < 7; n++) await mg.enqueue(well, n, { tenantId: `w${n}` });
      await until(async () => (await count("delivered")) === 7, 8_000);
      expect(performance.now() - startedMs).toBeLessThan(5_000);
      await mg.close();
    },
  );
});
