/**
 * What a store declares about itself is true: what it survives, whether callers' transactions and several processes are
 * possible, and what it does when it is closed.
 */
import assert from "node:assert/strict";
import { DELIVERED, dead, idsOf, PLAIN, refused, SECOND, seen } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

export const traitCases: Record<string, (scene: Scene) => Promise<void>> = {
  "the harness brings what the traits promise": async ({ store: { traits }, harness }) => {
    assert.ok(traits.name.length > 0);
    assert.equal(harness.transaction !== undefined, traits.callerTransactions, "callerTransactions needs harness.transaction");
    assert.equal(harness.another !== undefined, traits.processes === "many", "processes: many needs harness.another");
    assert.equal(harness.reopen !== undefined, traits.survives !== "nothing", "survives needs harness.reopen");
  },

  "an open store says so": async (scene) => {
    await scene.store.check();
    await scene.store.idle("worker", true);
    await scene.store.idle("worker", false);
  },

  "a check says that an enqueue would be accepted, and leaves nothing behind": async (scene) => {
    const { store } = scene;
    assert.deepEqual(await store.check(), { lost: null });
    const before = await store.counts({ delivered: true });
    const { survives } = store.traits;
    assert.deepEqual(await store.check({ durability: true, write: true }), { lost: null });
    assert.equal(store.traits.survives, survives);
    assert.deepEqual(await store.counts({ delivered: true }), before);
    assert.deepEqual(await store.lanes(), []);
  },

  "a closed store refuses with `closed`, and closing twice is no error": async (scene) => {
    const { store } = scene;
    await store.close();
    await store.close();
    await refused("closed", () => store.check());
    await refused("closed", () => store.enqueue([scene.message()], scene.at(0)));
    await refused("closed", () => store.claim({ owner: "w", leaseMs: 30_000, lanes: [{ lane: "1", limit: 1 }] }));
    await refused("closed", () => store.get(scene.id()));
    await refused("closed", () => store.topics.list());
  },

  "I1: what was accepted, claimed, settled and declared survives what the store says it survives": async (scene) => {
    if (scene.store.traits.survives === "nothing") return;
    const ids = await scene.accept(0, {}, {}, {}, { delayMs: 10 * SECOND });
    const [first, second, third] = await scene.take(3, 1);
    await scene.settled(2, [first!], DELIVERED);
    await scene.settled(2, [second!], dead());
    const before = await Promise.all(ids.map((id) => seen(scene.store, id)));
    const store = await scene.reopen();
    assert.deepEqual(await Promise.all(ids.map((id) => seen(store, id))), before);
    assert.equal((await store.history(first!.id)).attempts.length, 1);
    assert.equal((await store.topics.get(PLAIN))?.name, PLAIN);
    const taken = await store.reclaim({ owner: "other", leaseMs: 30_000, limit: 10, ...scene.at(40 * SECOND) });
    assert.deepEqual(idsOf(taken), [third!.id]);
  },

  "a claim survives its process: the token still settles after a reopen": async (scene) => {
    if (scene.store.traits.survives === "nothing") return;
    await scene.accept(0);
    const claimed = await scene.take(1, 1);
    const store = await scene.reopen();
    assert.deepEqual(await scene.settle(2, claimed, DELIVERED, store), ["settled"]);
  },

  "several instances see one truth": async (scene) => {
    const [one, two] = await scene.instances(2);
    assert.ok(one && two);
    const [id] = await scene.accept(0, { key: "k", payload: "1" });
    assert.deepEqual(await two.enqueue([scene.message({ key: "k", payload: "1" })], scene.at(0)), [{ kind: "duplicate", id }]);
    const claimed = await scene.take(1, 1, { store: two });
    assert.deepEqual(await one.extend([claimed[0]!.claim], 60_000, scene.at(2)), ["extended"]);
    assert.deepEqual(await scene.settle(3, claimed, DELIVERED, one), ["settled"]);
    assert.deepEqual(await scene.settle(4, claimed, DELIVERED, two), ["lost"]);
    assert.deepEqual(await two.get(id as string), await one.get(id as string));
    await one.topics.pause(PLAIN, true);
    assert.equal((await two.topics.get(PLAIN))?.paused, true);
  },
};
