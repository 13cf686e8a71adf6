/**
 * What is due in some lanes: a bounded list of it, the longest due first, and how many there are. It is what a claim would find, no more and no less.
 */
import assert from "node:assert/strict";
import { DELIVERED, dead, hold, idsOf, KEYED, OTHER, PLAIN, retry, STRICT, seen, sorted } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

/** The lanes of a topic that hold something at this moment. */
async function lanesOf(scene: Scene, name: string, ms: number): Promise<string[]> {
  return (await scene.store.lanes(scene.at(ms))).filter(({ topic }) => topic === name).map(({ lane }) => lane);
}

export const dueCases: Record<string, (scene: Scene) => Promise<void>> = {
  "what is due in some lanes: the longest due first, as many as are wanted, as they stand": async (scene) => {
    const fields = [5, 40, 20, 10, 30, 60_000].map((delayMs, i) => ({ delayMs, tenantId: i % 2 === 0 ? "t1" : "t2" }));
    const [first, fifth, third, second, fourth] = await scene.accept(0, ...fields);
    await scene.accept(0, { topic: OTHER });
    const inOrder = [first, second, third, fourth, fifth];
    const dueIn = await lanesOf(scene, PLAIN, 49);
    const { data, nextCursor } = await scene.store.list({ dueIn, limit: 10, ...scene.at(49) });
    assert.deepEqual([idsOf(data), nextCursor], [inOrder, null]);
    for (const view of data) assert.deepEqual(view, await seen(scene.store, view.id));
    const few = await scene.store.list({ dueIn, limit: 3, payload: false, ...scene.at(49) });
    assert.deepEqual([idsOf(few.data), few.nextCursor], [inOrder.slice(0, 3), null]);
    assert.ok(few.data.every(({ payload }) => payload === ""));
    assert.deepEqual(idsOf((await scene.store.list({ dueIn, limit: 10, ...scene.at(19) })).data), [first, second]);
    for (const lane of dueIn) {
      const alone = (await scene.store.list({ dueIn: [lane], limit: 10, ...scene.at(49) })).data;
      const expected = data.filter(({ tenantId }) => tenantId === alone[0]?.tenantId);
      assert.deepEqual(idsOf(alone), idsOf(expected), "no lane but those that are named");
    }
    assert.deepEqual(await scene.store.list({ dueIn: [], limit: 10 }), { data: [], nextCursor: null });
  },

  "what is due in some lanes: nothing that is claimed, held or settled, and what is due again": async (scene) => {
    const ids = await scene.accept(0, {}, {}, {}, {}, { delayMs: 60_000 });
    const claimed = await scene.take(4, 1);
    const dueIn = [claimed[0]?.lane as string];
    const listed = async (ms: number) => idsOf((await scene.store.list({ dueIn, limit: 10, ...scene.at(ms) })).data);
    assert.deepEqual(await listed(2), [], "under a claim, or not due");
    for (const [i, end] of [DELIVERED, hold(), dead(), retry(10)].entries()) await scene.settled(3, [claimed[i]!], end);
    assert.deepEqual(await listed(12), []);
    assert.deepEqual(await listed(13), [claimed[3]?.id]);
    assert.deepEqual(await listed(60_000), [claimed[3]?.id, ids[4]]);
  },

  "what is due in an ordered lane: of each key the next one, while its key is open": async (scene) => {
    const strict = { topic: STRICT, tenantId: "t1" };
    const [a1] = await scene.accept(0, { ...strict, orderingKey: "a", delayMs: 20 });
    const [b1, b2] = await scene.accept(1, { ...strict, orderingKey: "b" }, { ...strict, orderingKey: "b" });
    const [a2] = await scene.accept(2, { ...strict, orderingKey: "a" });
    const dueIn = await lanesOf(scene, STRICT, 10);
    const listed = async (ms: number) => idsOf((await scene.store.list({ dueIn, limit: 10, ...scene.at(ms) })).data);
    assert.deepEqual(await listed(10), [b1], "the head of the other is not due");
    assert.deepEqual(await listed(20), [b1, a1]);
    const [taken] = await scene.take(1, 20);
    assert.equal(taken?.id, b1);
    assert.deepEqual(await listed(21), [a1], "one of its key is in flight");
    await scene.settled(22, [taken!], DELIVERED);
    assert.deepEqual(sorted(await listed(23)), sorted([a1!, b2!]));
    await scene.settled(25, await scene.take(2, 24), dead(true));
    assert.deepEqual(await listed(26), [], "a dead head keeps its key closed");
    assert.equal((await seen(scene.store, a2!)).status, "pending");
  },

  "lanes say how many of their messages are due, where that is asked for": async (scene) => {
    const delays = [0, 0, 0, 60_000].map((delayMs) => ({ delayMs }));
    await scene.accept(
      0,
      ...delays,
      { tenantId: "t1" },
      { tenantId: "t1", delayMs: 60_000 },
      { tenantId: "t2", delayMs: 60_000 },
    );
    await scene.accept(0, ...["a", "a", "b"].map((orderingKey) => ({ topic: KEYED, orderingKey })));
    await scene.take(1, 1, { lanes: ({ topic, tenantId }) => topic === PLAIN && tenantId === null });
    const counted = await scene.store.lanes({ counted: true, ...scene.at(1) });
    const found = counted.map(({ topic, tenantId, due }) => `${topic} ${tenantId} ${due}`);
    assert.deepEqual(sorted(found), [`${KEYED} null 2`, `${PLAIN} null 2`, `${PLAIN} t1 1`, `${PLAIN} t2 0`]);
    const byName = (await scene.store.lanes({ counted: true, limit: 2, ...scene.at(1) })).map(({ lane, due }) => [lane, due]);
    assert.deepEqual(
      byName,
      byName.map(([lane]) => [lane, counted.find((one) => one.lane === lane)?.due]),
    );
    assert.ok((await scene.store.lanes(scene.at(1))).every(({ due }) => due === undefined));
  },
};
