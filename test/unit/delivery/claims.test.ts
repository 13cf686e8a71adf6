/** What a backlog costs in calls to the store: claims worth their way, and no telling of waiting that is none. */
import { expect, it } from "vitest";
import { topic } from "../../../src/index.ts";
import { createMemoryStore } from "../../../src/store/memory/memory-store.ts";
import { pause, setUp, until, wrap } from "./support.ts";

it("a topic at its own limit is claimed from in batches, not one for each that ends, and is no rest", async () => {
  const inner = createMemoryStore();
  const sizes: number[] = [];
  let told = 0;
  const store = wrap(inner, {
    claim: async (request) => {
      const claimed = await inner.claim(request);
      if (claimed.length > 0) sizes.push(claimed.length);
      return claimed;
    },
    idle: async (owner, waiting) => {
      told++;
      await inner.idle(owner, waiting);
    },
  });
  let running = 0;
  let most = 0;
  const ends = (i: number) => 1 + (i % 7);
  const limited = topic<number>("a/limited", {
    concurrency: 16,
    sink: async (i) => {
      most = Math.max(most, ++running);
      await pause(ends(i));
      running--;
    },
  });
  const { mg, count } = await setUp([limited], { store, concurrency: 50 });
  const messages = Array.from({ length: 1_600 }, (_, i) => ({ payload: i }));
  for (let at = 0; at < messages.length; at += 400) await mg.enqueueMany(limited, messages.slice(at, at + 400));
  mg.work();
  await until(async () => (await count("delivered")) >= messages.length, 20_000);
  await mg.close();
  expect(most).toBe(16);
  // One at a time it was a claim for nearly each of them; a fast sink is worth claims of what it begins in a tenth of a second.
  expect(sizes.length).toBeLessThan(messages.length / 8);
  expect(told).toBeLessThan(20);
});
