/**
 * Lanes and claims: what is due comes in the order of (due, id), from the lanes that were named and no others, within the
 * limits that were asked for.
 */
import assert from "node:assert/strict";
import type { Lane } from "../../store/store.ts";
import { DELIVERED, hold, idsOf, KEYED, OTHER, PLAIN, retry, SECOND, sorted } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

/** A round in parts names each lane once, and all of them. */
async function inParts(scene: Scene, limit: number, count: number): Promise<void> {
  const parts: string[][] = [];
  let after: string | undefined;
  do {
    const part = (await scene.store.lanes({ ...scene.at(1), after, limit })).map(({ lane }) => lane);
    parts.push(part);
    after = part.length < limit ? undefined : part.at(-1);
  } while (after !== undefined && parts.length < 10);
  const all = (await scene.store.lanes(scene.at(1))).map(({ lane }) => lane);
  assert.equal(all.length, count);
  assert.deepEqual(sorted(parts.flat()), sorted(all));
}

export const claimOrderCases: Record<string, (scene: Scene) => Promise<void>> = {
  "within a lane by due time, then by id": async (scene) => {
    const [late, first, second, middle] = await scene.accept(0, { delayMs: 3_000 }, {}, {}, { delayMs: 1_000 });
    const batch = await scene.claim(5_000, { limit: 2 });
    assert.deepEqual(idsOf(batch), [first, second]);
    assert.equal((await scene.takeOne(5_001)).id, middle);
    assert.equal((await scene.takeOne(5_002)).id, late);
  },

  "nothing is claimed before it is due, and it is due at its time exactly": async (scene) => {
    const [id] = await scene.accept(0, { delayMs: 10_000 });
    await scene.nothing(9_999);
    assert.equal((await scene.takeOne(10_000)).id, id);
  },

  "a claimed message carries what was enqueued, its claim and its attempt": async (scene) => {
    const fields = { tenantId: "t1", key: "k", payload: '{"a": 1}', priority: -3, traceparent: "00-ab-cd-01", schemaVersion: 2 };
    const [id] = await scene.accept(0, fields);
    const { claim, lane, ...claimed } = await scene.takeOne(1);
    assert.ok(claim.lease.length > 0 && claim.token.length > 0 && lane.length > 0);
    assert.deepEqual(claimed, {
      ...fields,
      id,
      topic: PLAIN,
      orderingKey: null,
      attempt: 1,
      base: 0,
      handedDown: false,
      suspicion: 0,
      retried: false,
    });
  },

  "CON-21: an attempt counts from the claim on, and the message is processing": async (scene) => {
    const [id] = await scene.accept(0);
    await scene.takeOne(1);
    const view = await scene.store.get(id as string);
    assert.deepEqual([view?.status, view?.attempts, view?.nextAttemptAt], ["processing", 1, null]);
  },

  "I3: what is claimed is not claimed again": async (scene) => {
    await scene.accept(0, {}, {});
    await scene.take(2, 1);
    await scene.nothing(2);
    assert.deepEqual(await scene.store.lanes(scene.at(3)), []);
  },

  "a lane for each topic, tenant and priority, listed with what is due next": async (scene) => {
    await scene.accept(
      0,
      {},
      { delayMs: 5_000 },
      { tenantId: "t1", delayMs: 2_000 },
      { priority: 5, delayMs: 4_000 },
      { priority: -5 },
      { topic: OTHER },
    );
    const lanes = await scene.store.lanes(scene.at(3_000));
    const plain = (lane: Omit<Lane, "lane">) => JSON.stringify([lane.topic, lane.tenantId, lane.priority, lane.dueInMs]);
    const expected = [
      [OTHER, null, 0, -3_000],
      [PLAIN, null, -5, -3_000],
      [PLAIN, null, 0, -3_000],
      [PLAIN, null, 5, 1_000],
      [PLAIN, "t1", 0, -1_000],
    ].map((each) => JSON.stringify(each));
    assert.deepEqual(sorted(lanes.map(plain)), sorted(expected));
    assert.equal(new Set(lanes.map(({ lane }) => lane)).size, 5);
    assert.ok(lanes.every(({ ordered, suspicion }) => !ordered && suspicion === 0));
  },

  "a held message is never due: a lane with nothing else is not listed": async (scene) => {
    await scene.accept(0);
    await scene.settled(2, await scene.take(1, 1), hold());
    assert.deepEqual(await scene.store.lanes(scene.at(3)), []);
  },

  "DO-8: only the lanes that are named": async (scene) => {
    const [mine] = await scene.accept(0, {}, { topic: OTHER }, { tenantId: "t1" }, { priority: 1 });
    const only = (lane: Lane) => lane.topic === PLAIN && lane.tenantId === null && lane.priority === 0;
    assert.deepEqual(idsOf(await scene.claim(1, { lanes: only })), [mine]);
    await scene.nothing(2, { lanes: only });
    assert.equal((await scene.claim(3, { lanes: ({ topic }) => topic === OTHER })).length, 1);
  },

  "a limit for each lane; all that one call takes is one lease": async (scene) => {
    await scene.accept(0, ...Array.from({ length: 12 }, (_, i) => ({ tenantId: `t${i % 3}` })));
    const lanes = (await scene.store.lanes(scene.at(1))).map(({ lane, tenantId }) => ({
      lane,
      limit: tenantId === "t0" ? 1 : tenantId === "t1" ? 3 : 100,
    }));
    const claimed = await scene.store.claim({ owner: "worker", leaseMs: 30_000, lanes, ...scene.at(1) });
    const of = (tenantId: string) => claimed.filter((each) => each.tenantId === tenantId).length;
    assert.deepEqual([of("t0"), of("t1"), of("t2")], [1, 3, 4]);
    assert.equal(new Set(claimed.map(({ claim }) => `${claim.lease} ${claim.token}`)).size, 1);
  },

  "two claims are two leases": async (scene) => {
    await scene.accept(0, {}, {});
    const one = await scene.takeOne(1);
    const two = await scene.takeOne(2);
    assert.notEqual(one.claim.lease, two.claim.lease);
    assert.notEqual(one.claim.token, two.claim.token);
  },

  "lanes that hold nothing any more are no error": async (scene) => {
    await scene.accept(0);
    const lanes = (await scene.store.lanes(scene.at(1))).map(({ lane }) => ({ lane, limit: 10 }));
    await scene.settled(2, await scene.take(1, 1), DELIVERED);
    assert.deepEqual(await scene.store.claim({ owner: "worker", leaseMs: 30_000, lanes, ...scene.at(3) }), []);
    assert.deepEqual(await scene.store.claim({ owner: "worker", leaseMs: 30_000, lanes: [], ...scene.at(3) }), []);
  },

  "I10: bytesMax bounds the payload of the whole batch, in bytes, and the rest comes later": async (scene) => {
    const payload = JSON.stringify("é".repeat(49));
    assert.equal(Buffer.byteLength(payload), 100);
    const ids = await scene.accept(0, ...Array.from({ length: 5 }, () => ({ payload })));
    const first = await scene.claim(1, { bytesMax: 250 });
    assert.deepEqual(idsOf(first), ids.slice(0, 2));
    assert.equal((await scene.claim(2, { bytesMax: 100 })).length, 1);
    assert.deepEqual(sorted(idsOf(await scene.take(2, 3, { bytesMax: 1_000 }))), sorted(ids.slice(3)));
  },

  "I10: bytesMax bounds a batch of messages that were tried before, too": async (scene) => {
    const payload = JSON.stringify("x".repeat(98));
    const ids = await scene.accept(0, ...Array.from({ length: 5 }, () => ({ payload })));
    await scene.settled(2, await scene.take(5, 1), retry(1));
    assert.deepEqual(idsOf(await scene.claim(SECOND, { bytesMax: 250 })), ids.slice(0, 2));
    assert.deepEqual(sorted(idsOf(await scene.take(3, SECOND, { bytesMax: 1_000 }))), sorted(ids.slice(2)));
  },

  "at least one message comes, even if it alone is larger than bytesMax": async (scene) => {
    const ids = await scene.accept(0, { payload: JSON.stringify("x".repeat(5_000)) }, {});
    assert.deepEqual(idsOf(await scene.claim(1, { bytesMax: 10 })), [ids[0]]);
    assert.equal((await scene.takeOne(SECOND, { bytesMax: 10 })).id, ids[1]);
  },

  "N21: the lanes come in parts, each once, and a part that is not full is the end": async (scene) => {
    const tenants = (from: number, count: number) => Array.from({ length: count }, (_, i) => ({ tenantId: `t${from + i}` }));
    await scene.accept(0, ...tenants(0, 25), { topic: KEYED, orderingKey: "k", tenantId: "t1" });
    await inParts(scene, 10, 26);
    // Very many, which no store need look at in one go; some are emptied and some are new while the round goes on.
    for (const from of [25, 525, 1_025]) await scene.accept(0, ...tenants(from, 500));
    await inParts(scene, 400, 1_526);
    const first = (await scene.store.lanes({ ...scene.at(1), limit: 400 })).map(({ lane }) => lane);
    await scene.accept(1, ...tenants(2_000, 10));
    await scene.settled(2, await scene.claim(2, { lanes: ({ lane }) => first.includes(lane) }), DELIVERED);
    await inParts(scene, 400, 1_536 - first.length);
  },
};
