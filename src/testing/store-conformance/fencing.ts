/**
 * Fencing (I4, DO-3): only the live token settles or extends. A holder that lost it gets `lost` and changes nothing, with
 * any call and however late.
 */
import assert from "node:assert/strict";
import type { ClaimedMessage } from "../../message/message.ts";
import { DELIVERED, dead, hold, idsOf, RELEASE, retry, SECOND } from "./fixtures.ts";
import { type Scene, settles } from "./scene.ts";

const EVERY_KIND = [DELIVERED, retry(), retry(SECOND, false, 1), dead(), hold(), RELEASE];

/** Everything about a message that a settle could change. */
async function state(scene: Scene, id: string): Promise<unknown> {
  return { view: await scene.store.get(id), history: await scene.store.history(id) };
}

async function reclaim(scene: Scene, ms: number, limit = 10): Promise<ClaimedMessage[]> {
  return scene.store.reclaim({ owner: "other", leaseMs: 30_000, limit, ...scene.at(ms) });
}

/** None of these claims may change anything any more. */
async function powerless(scene: Scene, ms: number, stale: readonly ClaimedMessage[]): Promise<void> {
  for (const message of stale) {
    const before = await state(scene, message.id);
    for (const settlement of EVERY_KIND)
      assert.deepEqual(await scene.settle(ms, [message], settlement), ["lost"], settlement.kind);
    assert.deepEqual(await scene.store.extend([message.claim], 60_000, scene.at(ms)), ["lost"]);
    assert.deepEqual(await state(scene, message.id), before);
  }
}

export const fencingCases: Record<string, (scene: Scene) => Promise<void>> = {
  "DO-3: after a reclaim the old token settles and extends nothing": async (scene) => {
    await scene.accept(0, {}, {});
    const stale = await scene.take(2, 1);
    const taken = await reclaim(scene, 31 * SECOND);
    assert.equal(taken.length, 2);
    await powerless(scene, 32 * SECOND, stale);
    await scene.settled(33 * SECOND, taken, DELIVERED);
    await powerless(scene, 34 * SECOND, stale);
  },

  "DO-3: the new token works: settle and extend": async (scene) => {
    await scene.accept(0, {}, {});
    await scene.take(2, 1);
    const [one, two] = await reclaim(scene, 31 * SECOND);
    assert.ok(one && two);
    assert.deepEqual(await scene.store.extend([one.claim, two.claim], 60_000, scene.at(32 * SECOND)), ["extended", "extended"]);
    await scene.settled(33 * SECOND, [one, two], DELIVERED);
  },

  "DO-3: after reclaim and redelivery only the last claim counts": async (scene) => {
    const [id] = await scene.accept(0);
    const first = await scene.take(1, 1);
    const second = await reclaim(scene, 31 * SECOND);
    await scene.settled(32 * SECOND, second, retry());
    const third = await scene.take(1, 33 * SECOND);
    assert.equal(third[0]?.attempt, 2);
    await powerless(scene, 34 * SECOND, [...first, ...second]);
    await scene.settled(35 * SECOND, third, DELIVERED);
    const { attempts } = await scene.store.history(id as string);
    assert.deepEqual(
      attempts.map(({ attempt, outcome }) => [attempt, outcome]),
      [
        [1, "retry"],
        [2, "delivered"],
      ],
    );
  },

  "DO-3: a second settle is lost, whatever the first one was": async (scene) => {
    await scene.accept(0, ...EVERY_KIND.map(() => ({})));
    const claimed = await scene.take(EVERY_KIND.length, 1);
    for (const [i, settlement] of EVERY_KIND.entries()) await scene.settled(2, [claimed[i]!], settlement);
    await powerless(scene, 3, claimed);
  },

  "one message twice in one settle: the first counts": async (scene) => {
    const [id] = await scene.accept(0);
    const claimed = await scene.take(1, 1);
    const both = [...settles(claimed, DELIVERED), ...settles(claimed, dead())];
    assert.deepEqual(await scene.store.settle(both, scene.at(2)), ["settled", "lost"]);
    assert.equal((await scene.store.get(id as string))?.status, "delivered");
  },

  "another lease's token, a made-up lease and another message's claim prove nothing": async (scene) => {
    await scene.accept(0, {}, {});
    const one = await scene.takeOne(1);
    const two = await scene.takeOne(2);
    const forged = [
      { ...one, claim: { lease: one.claim.lease, token: two.claim.token } },
      { ...one, claim: { lease: two.claim.lease, token: one.claim.token } },
      { ...one, claim: two.claim },
      { ...two, claim: one.claim },
    ];
    for (const each of forged) assert.deepEqual(await scene.settle(3, [each], DELIVERED), ["lost"]);
    const mixed = [forged[0]!.claim, forged[1]!.claim];
    assert.deepEqual(await scene.store.extend(mixed, 60_000, scene.at(4)), ["lost", "lost"]);
    await scene.settled(5, [one, two], DELIVERED);
  },

  "live and stale claims in one settle: each is answered for itself, in order": async (scene) => {
    await scene.accept(0, {}, {}, {});
    const stale = await scene.take(1, 1);
    const live = await scene.take(2, 20 * SECOND);
    await reclaim(scene, 32 * SECOND);
    const order = [live[0]!, stale[0]!, live[1]!];
    assert.deepEqual(await scene.settle(33 * SECOND, order, DELIVERED), ["settled", "lost", "settled"]);
    const claims = [stale[0]!.claim, live[0]!.claim];
    assert.deepEqual(await scene.store.extend(claims, 30_000, scene.at(34 * SECOND)), ["lost", "lost"]);
  },

  "a lease that ran out but was not taken over may still be extended and settled": async (scene) => {
    await scene.accept(0, {}, {});
    const [one, two] = await scene.take(2, 1);
    assert.ok(one && two);
    await scene.settled(40 * SECOND, [one], DELIVERED);
    assert.deepEqual(await scene.store.extend([two.claim], 30_000, scene.at(41 * SECOND)), ["extended"]);
    assert.deepEqual(idsOf(await reclaim(scene, 70 * SECOND)), [], "the extension holds");
    await scene.settled(100 * SECOND, [two], DELIVERED);
  },

  "I4: a message that was given back is not settled by its former holder": async (scene) => {
    await scene.accept(0);
    const first = await scene.take(1, 1);
    await scene.settled(2, first, RELEASE);
    const second = await scene.take(1, 3);
    assert.equal(second[0]?.attempt, first[0]?.attempt, "the same number, so the token alone tells them apart");
    await powerless(scene, 4, first);
    await scene.settled(5, second, DELIVERED);
  },
};
