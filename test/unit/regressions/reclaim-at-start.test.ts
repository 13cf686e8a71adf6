/**
 * Found by the simulation (seed 13): a worker that has just started takes leases back before it has looked at the topics. It must ask for the
 * rules of what it found and not judge by the defaults: ten attempts where the topic says three, and an open key where it is strict (I6).
 */
import { expect, it } from "vitest";
import { createMakegood } from "../../../src/create.ts";
import { createIds } from "../../../src/platform/ids.ts";
import { createMemoryStore } from "../../../src/store/memory/memory-store.ts";
import { newMessage, retry } from "../../../src/testing/store-conformance/fixtures.ts";
import { topic } from "../../../src/topic/topic.ts";
import { until } from "../delivery/support.ts";

it("what was lost for the last time dies by its topic's own rules, whichever process finds it", async () => {
  const store = createMemoryStore();
  const { definition } = topic("a/strict", { ordering: "strict", retry: { attemptsMax: 1 }, leaseMs: 1_000 });
  await store.topics.put(definition, "api");
  const id = createIds()();
  await store.enqueue([newMessage(id, { topic: "a/strict", orderingKey: "k" })]);
  const take = async () => {
    const lanes = (await store.lanes()).map(({ lane }) => ({ lane, limit: 1 }));
    const [claimed] = await store.claim({ owner: "gone", leaseMs: 20, lanes });
    return claimed as NonNullable<typeof claimed>;
  };
  const first = await take();
  await store.settle([{ ...first, durationMs: 1, settlement: retry(0, false, 2) }]);
  // Alone, and its worker is gone: this one counts.
  await take();
  await new Promise((resolve) => setTimeout(resolve, 50));
  const makegood = await createMakegood({ store, recovery: false });
  makegood.work();
  await until(async () => (await store.get(id))?.status !== "processing");
  expect(await store.get(id)).toMatchObject({ status: "dead", attempts: 1, lastCode: "lease_lost" });
  await store.enqueue([newMessage(createIds()(), { topic: "a/strict", orderingKey: "k" })]);
  expect(await store.lanes(), "a strict key is closed behind a dead letter").toEqual([]);
  await makegood.close();
});
