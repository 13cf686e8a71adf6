/**
 * The breaker's part of the topics seam: who may probe, how often, and for whom. All workers of one store agree on it.
 */
import assert from "node:assert/strict";
import { LIMITS } from "../../message/limits.ts";
import type { BreakerState } from "../../message/topic.ts";
import { definition, MINUTE, PLAIN, SECOND, sorted } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

async function breakerAt(scene: Scene, ms: number): Promise<BreakerState> {
  const record = await scene.store.topics.get(PLAIN, scene.at(ms));
  assert.ok(record);
  return record.breaker;
}

export const breakerCases: Record<string, (scene: Scene) => Promise<void>> = {
  "a trip opens the breaker for its cool-down and is counted": async (scene) => {
    const state = await scene.store.topics.trip(PLAIN, 30 * SECOND, "5 failures", scene.at(0));
    assert.deepEqual(state, { state: "open", probeInMs: 30_000, trips: 1, reason: "5 failures", tenants: [] });
    assert.deepEqual(await breakerAt(scene, 10 * SECOND), { ...state, probeInMs: 20_000 });
    assert.equal((await breakerAt(scene, MINUTE)).probeInMs, 0);
    const listed = (await scene.store.topics.list(scene.at(10 * SECOND))).find(({ name }) => name === PLAIN);
    assert.equal(listed?.breaker.probeInMs, 20_000);
  },

  "no probe of a closed breaker, nor before the cool-down has passed": async (scene) => {
    assert.equal(await scene.store.topics.probe(PLAIN, "a", 10_000, scene.at(0)), false);
    await scene.store.topics.trip(PLAIN, 30 * SECOND, "down", scene.at(0));
    assert.equal(await scene.store.topics.probe(PLAIN, "a", 10_000, scene.at(29 * SECOND)), false);
    assert.equal(await scene.store.topics.probe("test/unknown", "a", 10_000, scene.at(0)), false);
  },

  "one owner probes; another may when that one does not come back": async (scene) => {
    await scene.store.topics.trip(PLAIN, 30 * SECOND, "down", scene.at(0));
    assert.equal(await scene.store.topics.probe(PLAIN, "a", 10_000, scene.at(31 * SECOND)), true);
    assert.equal((await breakerAt(scene, 32 * SECOND)).state, "half_open");
    assert.equal(await scene.store.topics.probe(PLAIN, "b", 10_000, scene.at(32 * SECOND)), false);
    assert.equal(await scene.store.topics.probe(PLAIN, "b", 10_000, scene.at(42 * SECOND)), true);
  },

  "many ask at once: one may probe": async (scene) => {
    const instances = await scene.instances(10);
    await scene.store.topics.trip(PLAIN, SECOND, "down", scene.at(0));
    const asked = instances.map((store, i) => store.topics.probe(PLAIN, `owner-${i}`, 10_000, scene.at(2 * SECOND)));
    assert.equal((await Promise.all(asked)).filter(Boolean).length, 1);
  },

  "a failed probe opens it again, and a reset closes it and forgets the trips": async (scene) => {
    await scene.store.topics.trip(PLAIN, 30 * SECOND, "down", scene.at(0));
    await scene.store.topics.probe(PLAIN, "a", 10_000, scene.at(31 * SECOND));
    const again = await scene.store.topics.trip(PLAIN, 60 * SECOND, "still down", scene.at(32 * SECOND));
    assert.deepEqual(again, { state: "open", probeInMs: 60_000, trips: 2, reason: "still down", tenants: [] });
    assert.equal(await scene.store.topics.probe(PLAIN, "a", 10_000, scene.at(50 * SECOND)), false);
    await scene.store.topics.reset(PLAIN);
    const { state, trips, probeInMs } = await breakerAt(scene, 51 * SECOND);
    assert.deepEqual([state, trips, probeInMs], ["closed", 0, 0]);
    assert.equal(await scene.store.topics.probe(PLAIN, "a", 10_000, scene.at(200 * SECOND)), false);
  },

  "a new definition leaves the breaker as it is": async (scene) => {
    await scene.store.topics.trip(PLAIN, 30 * SECOND, "down", scene.at(0));
    await scene.store.topics.put({ ...definition(PLAIN), concurrency: 9 }, "code");
    assert.equal((await breakerAt(scene, SECOND)).state, "open");
  },

  "two workers that saw the same failures open it once; a shorter cool-down does not cut a probe short": async (scene) => {
    const { topics } = scene.store;
    await topics.trip(PLAIN, 100, "down", scene.at(0));
    assert.equal((await topics.trip(PLAIN, 100, "down", scene.at(50))).trips, 1);
    assert.equal(await topics.probe(PLAIN, "a", 1_000, scene.at(200)), true);
    const during = await topics.trip(PLAIN, 100, "late", scene.at(300));
    assert.deepEqual([during.state, during.trips, during.reason], ["half_open", 1, "down"]);
  },

  "R4: by hand one that is open or probed gets the reason and the cool-down from now on; no probe before that": async (scene) => {
    const { topics } = scene.store;
    await topics.trip(PLAIN, 100, "down", scene.at(0));
    const longer = await topics.trip(PLAIN, 60_000, "ann: let it rest", { byHand: true, ...scene.at(50) });
    assert.deepEqual([longer.state, longer.reason, longer.probeInMs], ["open", "ann: let it rest", 60_000]);
    assert.equal(await topics.probe(PLAIN, "a", 1_000, scene.at(60_000)), false);
    const shorter = await topics.trip(PLAIN, 1_000, "bo: a moment", { byHand: true, ...scene.at(60_000) });
    assert.deepEqual([shorter.reason, shorter.probeInMs], ["bo: a moment", 1_000]);
    const kept = await topics.trip(PLAIN, 10, "shorter", { byHand: true, ...scene.at(60_100) });
    assert.deepEqual([kept.reason, kept.probeInMs], ["shorter", 900], "what was asked for stands");
    assert.equal(await topics.probe(PLAIN, "a", 1_000, scene.at(61_000)), true);
    const probed = await topics.trip(PLAIN, 5_000, "again", { byHand: true, ...scene.at(61_100) });
    assert.deepEqual([probed.state, probed.reason, probed.probeInMs], ["open", "again", 5_000]);
    assert.equal(await topics.probe(PLAIN, "a", 1_000, scene.at(66_000)), false);
    assert.equal(await topics.probe(PLAIN, "a", 1_000, scene.at(66_100)), true);
  },

  "N1: one probe a second over all workers, whether or not the one before came back": async (scene) => {
    const [a, b] = await scene.instances(2);
    await scene.store.topics.trip(PLAIN, 100, "down", scene.at(0));
    const granted: number[] = [];
    for (let ms = 0; ms <= 5_000; ms += 50) {
      for (const store of [a, b]) if (await store?.topics.probe(PLAIN, "w", 1_000, scene.at(ms))) granted.push(ms);
    }
    assert.deepEqual(granted, [100, 1_100, 2_100, 3_100, 4_100]);
    assert.equal((await breakerAt(scene, 5_000)).trips, 1);
  },

  "N1: what failed before rests in between, and what never failed need not wait for it": async (scene) => {
    const { topics } = scene.store;
    await topics.trip(PLAIN, 0, "down", scene.at(0));
    assert.equal(await topics.probe(PLAIN, "a", 1_000, { restMs: 4_000, ...scene.at(10) }), true);
    assert.equal((await breakerAt(scene, 20)).trips, 2);
    assert.equal(await topics.probe(PLAIN, "a", 1_000, { restMs: 4_000, ...scene.at(1_100) }), false);
    assert.equal(await topics.probe(PLAIN, "a", 1_000, scene.at(1_200)), true);
    assert.equal(await topics.probe(PLAIN, "a", 1_000, { restMs: 8_000, ...scene.at(2_100) }), false, "one of them a second");
    assert.equal(await topics.probe(PLAIN, "a", 1_000, { restMs: 8_000, ...scene.at(4_100) }), true);
    await topics.reset(PLAIN);
    await topics.trip(PLAIN, 0, "down", scene.at(4_200));
    assert.equal(await topics.probe(PLAIN, "a", 1_000, { restMs: 4_000, ...scene.at(4_300) }), true, "a reset ends the rest");
  },

  "N1: a tenant is held alone, probed within the topic's one a second, and let go alone": async (scene) => {
    const { topics } = scene.store;
    const of = (tenantId: string, ms: number) => ({ tenantId, ...scene.at(ms) });
    const held = await topics.trip(PLAIN, 5, "t1 fails", of("t1", 0));
    assert.equal(await topics.probe(PLAIN, "a", 1_000, of("t1", 4)), false, "its cool-down");
    assert.deepEqual(held, {
      state: "closed",
      probeInMs: 5,
      trips: 0,
      reason: null,
      tenants: [{ tenantId: "t1", reason: "t1 fails" }],
    });
    await topics.trip(PLAIN, 0, "7 fails", of("7", 1));
    await topics.trip(PLAIN, 0, "again", of("t1", 2));
    const listed = (await topics.list(scene.at(3))).find(({ name }) => name === PLAIN)?.breaker.tenants ?? [];
    assert.deepEqual(sorted(listed.map(({ tenantId, reason }) => `${tenantId}: ${reason}`)), ["7: 7 fails", "t1: t1 fails"]);
    assert.equal(await topics.probe(PLAIN, "a", 1_000, scene.at(10)), false, "the topic itself is closed");
    assert.equal(await topics.probe(PLAIN, "a", 1_000, of("t2", 10)), false, "nobody holds t2");
    assert.equal(await topics.probe(PLAIN, "a", 1_000, of("t1", 10)), true);
    assert.equal(await topics.probe(PLAIN, "b", 1_000, of("7", 500)), false);
    assert.equal((await breakerAt(scene, 510)).probeInMs, 500);
    assert.equal(await topics.probe(PLAIN, "b", 1_000, of("7", 1_010)), true);
    await topics.reset(PLAIN, { tenantId: "t1" });
    assert.deepEqual((await breakerAt(scene, 1_020)).tenants, [{ tenantId: "7", reason: "7 fails" }]);
    await topics.reset(PLAIN, { tenantId: "7" });
    assert.deepEqual(await breakerAt(scene, 1_030), { state: "closed", probeInMs: 0, trips: 0, reason: null, tenants: [] });
  },

  "N1: the topic's breaker takes the place of its tenants', and so do too many of them": async (scene) => {
    const { topics } = scene.store;
    await topics.trip(PLAIN, 0, "t1 fails", { tenantId: "t1", ...scene.at(0) });
    const open = await topics.trip(PLAIN, 100, "all fail", scene.at(1));
    assert.deepEqual([open.state, open.tenants], ["open", []]);
    assert.deepEqual(await topics.trip(PLAIN, 100, "t2 fails", { tenantId: "t2", ...scene.at(1) }), open, "held already");
    assert.equal(await topics.probe(PLAIN, "a", 1_000, { tenantId: "t1", ...scene.at(200) }), false);
    await topics.reset(PLAIN);
    for (let n = 0; n < LIMITS.heldTenantsMax; n++) await topics.trip(PLAIN, 0, "fails", { tenantId: `t${n}`, ...scene.at(300) });
    const full = await breakerAt(scene, 301);
    assert.deepEqual([full.state, full.tenants.length], ["closed", LIMITS.heldTenantsMax]);
    const over = await topics.trip(PLAIN, 100, "one more", { tenantId: "one more", ...scene.at(302) });
    assert.deepEqual([over.state, over.tenants], ["open", []]);
    await topics.trip(PLAIN, 0, "x".repeat(5_000), { tenantId: "long", ...scene.at(303) });
  },

  "many hold tenants at once: none is forgotten": async (scene) => {
    const instances = await scene.instances(10);
    await Promise.all(instances.map((store, i) => store.topics.trip(PLAIN, 0, "fails", { tenantId: `t${i}`, ...scene.at(0) })));
    assert.equal((await breakerAt(scene, 1)).tenants.length, 10);
  },
};
