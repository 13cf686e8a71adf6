/**
 * What all workers share of a topic's rate and of its places: never more than the rate and its burst, never more than the total, also when
 * several ask at once; what was not used comes back, and what a dead worker had comes back with its time.
 */
import assert from "node:assert/strict";
import { burstOf } from "../../message/rate.ts";
import type { StartsAllotted } from "../../store/topics.ts";
import { definition, PLAIN, SECOND } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

const TTL = 30 * SECOND;
const OTHER = "test/other";

type Take = (ms: number, amount: number, tenantId?: string | null) => Promise<StartsAllotted>;

const taker =
  (scene: Scene, perSecond: number, topic = PLAIN): Take =>
  async (ms, amount, tenantId) => {
    const [one] = await scene.store.topics.allot([{ topic, perSecond, amount, tenantId }], scene.at(ms));
    return one as StartsAllotted;
  };

export const allotCases: Record<string, (scene: Scene) => Promise<void>> = {
  "rates and the total are part of the definition": async (scene) => {
    const { topics } = scene.store;
    const limits = { ratePerSecond: 12.5, tenantRatePerSecond: 0.5, concurrencyTotal: 3 };
    await topics.put({ ...definition(OTHER), ...limits }, "api");
    const { ratePerSecond, tenantRatePerSecond, concurrencyTotal } = (await topics.get(OTHER))!;
    assert.deepEqual({ ratePerSecond, tenantRatePerSecond, concurrencyTotal }, limits);
    await topics.put(definition(OTHER), "api");
    assert.equal((await topics.get(OTHER))?.ratePerSecond, undefined);
  },

  "a rate: the burst at once, then one after the other, and when the next one comes is said": async (scene) => {
    const take = taker(scene, 10);
    assert.equal((await take(0, 100)).granted, burstOf(10));
    const { granted, nextInMs } = await take(0, 1);
    assert.equal(granted, 0);
    assert.ok(nextInMs > 99 && nextInMs <= 100, `the next one in ${nextInMs} ms`);
    assert.equal((await take(50, 1)).granted, 0);
    assert.equal((await take(100, 5)).granted, 1);
    assert.equal((await take(550, 100)).granted, 4);
    assert.equal((await take(60 * SECOND, 100)).granted, 10);
  },

  "a rate below one a second: one at a time": async (scene) => {
    const take = taker(scene, 0.5);
    assert.equal((await take(0, 3)).granted, 1);
    assert.equal((await take(1_900, 1)).granted, 0);
    assert.equal((await take(2_000, 1)).granted, 1);
    const { granted, nextInMs } = await take(2_000, 1);
    assert.deepEqual([granted, Math.round(nextInMs)], [0, 2_000]);
  },

  "over a long time no more than the rate and the burst, however it is asked for": async (scene) => {
    const take = taker(scene, 7);
    let all = 0;
    for (let ms = 0; ms <= 10_000; ms += 37) all += (await take(ms, 1 + (ms % 3))).granted;
    assert.ok(all <= 7 * 10 + burstOf(7), `${all}`);
    assert.ok(all >= 7 * 10 + burstOf(7) - 2, `${all}`);
  },

  "what was not used comes back, and never more than the burst": async (scene) => {
    const take = taker(scene, 10);
    assert.equal((await take(0, 10)).granted, 10);
    await take(0, -4);
    assert.equal((await take(0, 10)).granted, 4);
    await take(0, -50);
    assert.equal((await take(0, 100)).granted, 10);
  },

  "topics, and the tenants of one topic, have buckets of their own; one call asks for many": async (scene) => {
    const ask = (topic: string, tenantId?: string | null) => ({ topic, tenantId, perSecond: 2, amount: 2 });
    const wanted = [ask(PLAIN), ask(PLAIN, null), ask(PLAIN, "a"), ask(PLAIN, "n"), ask(OTHER), ask(OTHER, "a")];
    const grantedAt = async (ms: number) => (await scene.store.topics.allot(wanted, scene.at(ms))).map(({ granted }) => granted);
    assert.deepEqual(await grantedAt(0), [2, 2, 2, 2, 2, 2]);
    assert.deepEqual(await grantedAt(100), [0, 0, 0, 0, 0, 0]);
    assert.deepEqual(await scene.store.topics.allot([], scene.at(0)), []);
  },

  "a clock that was set back stops nobody for long": async (scene) => {
    const take = taker(scene, 10);
    assert.equal((await take(3_600 * SECOND, 10)).granted, 10);
    assert.equal((await take(0, 10)).granted, 0);
    assert.equal((await take(500, 10)).granted, 5);
  },

  "another rate holds from the next call on": async (scene) => {
    assert.equal((await taker(scene, 100)(0, 40)).granted, 40);
    assert.equal((await taker(scene, 5)(0, 40)).granted, 5);
    assert.equal((await taker(scene, 5)(1_000, 40)).granted, 5);
  },

  "many at once: together no more than one alone would get": async (scene) => {
    const stores = await scene.instances(scene.store.traits.processes === "many" ? 2 : 1);
    const call = (n: number) =>
      stores[n % stores.length]!.topics.allot([{ topic: PLAIN, perSecond: 20, amount: 1 }], scene.at(0));
    const granted = (await Promise.all(Array.from({ length: 60 }, (_, n) => call(n)))).flat();
    assert.equal(
      granted.reduce((sum, one) => sum + one.granted, 0),
      20,
    );
  },

  "places: never more than the total over all owners; an owner may change what it has": async (scene) => {
    const { topics } = scene.store;
    const occupy = (owner: string, wants: number, ms = 0) =>
      topics.occupy(owner, [{ topic: PLAIN, total: 10, wants }], TTL, scene.at(ms));
    assert.deepEqual(await occupy("a", 7), [7]);
    assert.deepEqual(await occupy("b", 7), [3]);
    assert.deepEqual(await occupy("c", 1), [0]);
    assert.deepEqual(await occupy("a", 7), [7]);
    assert.deepEqual(await occupy("a", 2), [2]);
    assert.deepEqual(await occupy("c", 9), [5]);
    assert.deepEqual(await occupy("b", 0), [0]);
    assert.deepEqual(await occupy("a", 9), [5]);
  },

  "places of a dead owner come back when its time is over, those of a living one are kept by asking again": async (scene) => {
    const { topics } = scene.store;
    const occupy = (owner: string, ms: number, wants = 4) =>
      topics.occupy(owner, [{ topic: PLAIN, total: 4, wants }], TTL, scene.at(ms));
    assert.deepEqual(await occupy("a", 0), [4]);
    assert.deepEqual(await occupy("b", 29 * SECOND), [0]);
    assert.deepEqual(await occupy("a", 29 * SECOND), [4]);
    assert.deepEqual(await occupy("b", 31 * SECOND), [0]);
    assert.deepEqual(await occupy("b", 60 * SECOND), [4]);
    assert.deepEqual(await occupy("a", 60 * SECOND), [0]);
  },

  "places of several topics in one call; a lower total takes nothing away and gives nothing": async (scene) => {
    const { topics } = scene.store;
    const ask = (total: number, wants: number) => [
      { topic: OTHER, total: 2, wants: 5 },
      { topic: PLAIN, total, wants },
    ];
    assert.deepEqual(await topics.occupy("a", ask(8, 6), TTL, scene.at(0)), [2, 6]);
    assert.deepEqual(await topics.occupy("b", ask(8, 6), TTL, scene.at(0)), [0, 2]);
    assert.deepEqual(await topics.occupy("b", ask(3, 2), TTL, scene.at(0)), [0, 0]);
    assert.deepEqual(await topics.occupy("a", ask(3, 6), TTL, scene.at(0)), [2, 3]);
    assert.deepEqual(await topics.occupy("a", [], TTL, scene.at(0)), []);
  },

  "many owners at once: together never more than the total": async (scene) => {
    const stores = await scene.instances(scene.store.traits.processes === "many" ? 2 : 1);
    const call = (n: number) =>
      stores[n % stores.length]!.topics.occupy(`o${n}`, [{ topic: PLAIN, total: 7, wants: 2 }], TTL, scene.at(0));
    const held = (await Promise.all(Array.from({ length: 30 }, (_, n) => call(n)))).flat();
    assert.equal(
      held.reduce((sum, one) => sum + one, 0),
      7,
    );
  },
};
