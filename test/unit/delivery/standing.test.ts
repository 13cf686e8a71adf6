/**
 * Why a message waits, as `get` of the client says it: the same words as the HTTP API, from the same place.
 */
import { expect, it } from "vitest";
import { createMakegood, createMemoryStore, topic } from "../../../src/index.ts";

it("the client says why a message waits; a worker that says nothing of itself disproves that there is none", async () => {
  const store = createMemoryStore();
  const mg = await createMakegood({ store, topics: [topic("a/b", { sink: { kind: "http", url: "https://example.invalid/" } })] });
  const [first, second] = await mg.enqueueMany("a/b", [{ payload: 1 }, { payload: 2 }]);
  const whyOf = async (id = "") => {
    const message = await mg.get(id);
    return [message?.heldReason, message?.pendingReason?.code];
  };
  expect(await whyOf(second?.id)).toEqual(["no_worker", "no_worker"]);
  // A worker of the version before: it claims and announces nothing.
  const lanes = (await store.lanes()).map(({ lane }) => ({ lane, limit: 1 }));
  const [claimed] = await store.claim({ owner: "worker-before", leaseMs: 30_000, lanes });
  const other = [first, second].find((one) => one?.id !== claimed?.id);
  expect(await whyOf(claimed?.id)).toEqual([null, undefined]);
  expect(await whyOf(other?.id)).toEqual([null, "due"]);
  await store.topics.pause("a/b", true);
  expect(await whyOf(other?.id)).toEqual(["topic_paused", "topic_paused"]);
  expect((await store.get(other?.id ?? ""))?.heldReason).toBeNull();
  expect(await mg.get("01890a5d-ac96-774b-bcce-b302099a8057")).toBeNull();
  await mg.close();
});
