/**
 * Claims that begin inside a lane, as a probe's may: where both ends hold nothing but poison, what is between them is found by chance. By the
 * count of what is due and not by its times, without reading a long lane, and in an ordered one without leaving the order.
 */
import assert from "node:assert/strict";
import type { From } from "../../store/store.ts";
import { idsOf, KEYED, retry, SECOND, sorted } from "./fixtures.ts";
import { claimFrom } from "./retried.ts";
import type { Scene } from "./scene.ts";

const HOUR = 3_600 * SECOND;

async function laneAt(scene: Scene, ms: number): Promise<string> {
  const [lane] = await scene.store.lanes(scene.at(ms));
  assert.ok(lane, "a lane has something");
  return lane.lane;
}

/** Evenly spread, none a simple fraction. */
const spread = (count: number): number[] => Array.from({ length: count }, (_, n) => ((n + 1) * 0.618_033_988_749_9) % 1);

export const fromInsideCases: Record<string, (scene: Scene) => Promise<void>> = {
  "N1: by the count of what is due, however far apart the times are": async (scene) => {
    const delays = Array.from({ length: 10 }, (_, n) => ({ delayMs: n < 7 ? n : 10 * HOUR + n }));
    const ids = await scene.accept(0, ...delays, { delayMs: 20 * HOUR });
    const lane = await laneAt(scene, 11 * HOUR);
    const claim = (limit: number, from: From) => claimFrom(scene, 11 * HOUR, lane, limit, from);
    assert.deepEqual(await claim(1, 0.5), [ids[5]]);
    assert.deepEqual(await claim(1, 0.5), [ids[4]]);
    assert.deepEqual(await claim(1, 0), [ids[0]]);
    assert.deepEqual(sorted(await claim(2, 0.4)), sorted([ids[3], ids[6]] as string[]), "those from there on");
    assert.deepEqual(await claim(1, 0.999), [ids[9]]);
    assert.deepEqual(sorted(await claim(3, 0.999)), sorted([ids[2], ids[7], ids[8]] as string[]), "as many as there are");
    assert.deepEqual(await claim(5, 0.5), [ids[1]], "what is not due is none of them");
  },

  "N1: those of one moment, too": async (scene) => {
    const ids = await scene.accept(0, ...Array.from({ length: 100 }, () => ({})));
    const lane = await laneAt(scene, 1);
    const found: string[] = [];
    for (const from of [0.25, 0.5, 0.75]) found.push(...(await claimFrom(scene, 1, lane, 1, from)));
    const inOrder = sorted(ids);
    assert.deepEqual(found, [inOrder[25], inOrder[50], inOrder[75]]);
  },

  "N1: each part of a long lane is found, whether it came at once or slowly": async (scene) => {
    const part = new Map<string, 0 | 1 | 2>();
    for (const [n, everyMs] of [0, 0, 1_000].entries()) {
      for (let batch = 0; batch < 3; batch++) {
        const delays = Array.from({ length: 1_000 }, (_, i) => ({ delayMs: (batch * 1_000 + i) * everyMs }));
        for (const id of await scene.accept(n * SECOND, ...delays)) part.set(id, n as 0 | 1 | 2);
      }
    }
    const lane = await laneAt(scene, HOUR);
    const found: [number, number, number] = [0, 0, 0];
    for (const from of spread(60)) {
      for (const id of await claimFrom(scene, HOUR, lane, 1, from)) found[part.get(id) as 0 | 1 | 2]++;
    }
    assert.equal(found[0] + found[1] + found[2], 60);
    assert.ok(
      found.every((count) => count >= 6),
      `of 60 from a lane of three equal parts: ${found.join(", ")}`,
    );
  },

  "N1: of an ordered lane heads that never failed, and the oldest where there are none": async (scene) => {
    const keyed = (orderingKey: string, delayMs: number) => ({ topic: KEYED, orderingKey, delayMs });
    const failing = await scene.accept(0, keyed("f", 0), keyed("f", 0));
    await scene.settled(1, await scene.take(1, 1), retry(0, false, 0, true));
    const keys = ["a", "b", "c", "d", "e"];
    const heads = await scene.accept(2, ...keys.map((key, n) => keyed(key, n)));
    const behind = await scene.accept(2, ...keys.map((key) => keyed(key, 0)));
    const lane = await laneAt(scene, SECOND);
    const found: string[] = [];
    for (const from of spread(5)) found.push(...(await claimFrom(scene, SECOND, lane, 1, from)));
    assert.deepEqual(sorted(found), sorted(heads), `and none of ${behind.join()} behind them, nor what failed`);
    assert.deepEqual(await claimFrom(scene, SECOND, lane, 3, 0.5), [failing[0]]);
    assert.deepEqual(await claimFrom(scene, SECOND, lane, 3, 0.5), [], "nothing is left");
  },

  "N1: different heads of an ordered lane": async (scene) => {
    const ids = await scene.accept(
      0,
      ...Array.from({ length: 40 }, (_, n) => ({ topic: KEYED, orderingKey: `k${n}`, delayMs: n })),
    );
    const lane = await laneAt(scene, SECOND);
    assert.deepEqual(await claimFrom(scene, SECOND, lane, 1, 0.5), [ids[20]]);
    assert.deepEqual(await claimFrom(scene, SECOND, lane, 1, 0.999), [ids[39]]);
    assert.deepEqual(sorted(await claimFrom(scene, SECOND, lane, 2, 0.25)), sorted([ids[9], ids[10]] as string[]));
  },

  "I3: what many claim at once from the same spot is claimed once": async (scene) => {
    const ids = await scene.accept(0, ...Array.from({ length: 20 }, () => ({})));
    const lanes = [{ lane: await laneAt(scene, 1), limit: 2, from: 0.5 }];
    const stores = await scene.instances(8);
    const request = { owner: "a", leaseMs: 30_000, lanes, ...scene.at(1) };
    const taken = (await Promise.all(stores.map((store) => store.claim(request)))).flatMap(idsOf);
    assert.ok(taken.length >= 2, "one of them gets some");
    assert.equal(new Set(taken).size, taken.length);
    assert.ok(taken.every((id) => ids.includes(id)));
  },
};
