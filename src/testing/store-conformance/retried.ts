/**
 * Lanes of messages that failed before: apart from those that never did, so that a probe finds one of the latter and retries take
 * no other message's place. And the other end of a lane, from which a probe may take; from-inside.ts has what is between.
 */
import assert from "node:assert/strict";
import type { From } from "../../store/store.ts";
import { DELIVERED, idsOf, KEYED, RELEASE, retry, SECOND, seen, sorted } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

const fresh = { lanes: ({ retried }: { retried: boolean }) => !retried };
const apart = { lanes: ({ retried }: { retried: boolean }) => retried };
const failed = (delayMs = 0, counted = true) => retry(delayMs, counted, 0, true);

/** The ids that a claim of one lane brings. */
export async function claimFrom(scene: Scene, ms: number, lane: string, limit: number, from: From): Promise<string[]> {
  const lanes = [{ lane, limit, from }];
  return idsOf(await scene.store.claim({ owner: "a", leaseMs: 300 * SECOND, lanes, ...scene.at(ms) }));
}

export const retriedCases: Record<string, (scene: Scene) => Promise<void>> = {
  "N1: a message that failed comes back in a lane of its own, with its topic, tenant and priority": async (scene) => {
    const [first, second] = await scene.accept(0, { tenantId: "t1", priority: 3 }, { tenantId: "t1", priority: 3 });
    await scene.settled(2, await scene.take(1, 1), failed(SECOND));
    const lanes = (await scene.store.lanes(scene.at(3))).map(({ lane, ...rest }) => rest);
    const same = { topic: "test/plain", tenantId: "t1", priority: 3, suspicion: 0, ordered: false };
    assert.deepEqual(
      lanes.sort((a, b) => Number(a.retried) - Number(b.retried)),
      [
        { ...same, retried: false, dueInMs: -3 },
        { ...same, retried: true, dueInMs: SECOND - 1 },
      ],
    );
    const never = await scene.takeOne(2 * SECOND, fresh);
    assert.deepEqual([never.id, never.retried], [second, false]);
    const again = await scene.takeOne(2 * SECOND, apart);
    assert.deepEqual([again.id, again.retried, again.attempt, again.suspicion], [first, true, 2, 0]);
    await scene.settled(3 * SECOND, [never, again], DELIVERED);
  },

  "N1: what failed uncharged counts as having failed, and keeps its number": async (scene) => {
    const [id] = await scene.accept(0);
    await scene.settled(2, await scene.take(1, 1), failed(0, false));
    await scene.nothing(3, fresh);
    const again = await scene.takeOne(3, apart);
    assert.deepEqual([again.id, again.attempt, again.retried], [id, 1, true]);
    const { attempts } = await scene.store.history(id as string);
    assert.deepEqual(
      attempts.map(({ counted }) => counted),
      [false],
    );
  },

  "a suspect is a suspect first, and comes back apart once it is none; a replay begins anew": async (scene) => {
    const [id] = await scene.accept(0);
    await scene.settled(2, await scene.take(1, 1), retry(0, false, 1, true));
    const suspect = await scene.takeOne(3);
    assert.deepEqual([suspect.suspicion, suspect.retried], [1, false]);
    await scene.settled(4, [suspect], failed());
    const again = await scene.takeOne(5);
    assert.deepEqual([again.suspicion, again.retried], [0, true]);
    const died = { kind: "dead", blocksOrder: false, outcome: "reject", code: "no", error: "no" } as const;
    await scene.settled(6, [again], died);
    await scene.store.intervene({ id: id as string, action: "replay", actor: "person", reason: null, ...scene.at(7) });
    assert.equal((await scene.takeOne(8)).retried, false);
  },

  "what is given back unstarted, or taken over from a lost lease, is where it was": async (scene) => {
    await scene.accept(0);
    await scene.settled(2, await scene.take(1, 1), failed());
    await scene.settled(4, await scene.take(1, 3, apart), { kind: "release" });
    const held = await scene.takeOne(5, apart);
    assert.equal(held.retried, true);
    const [lost] = await scene.store.reclaim({ owner: "other", leaseMs: 30_000, limit: 10, ...scene.at(60 * SECOND) });
    assert.deepEqual([lost?.id, lost?.retried, lost?.suspicion], [held.id, true, 0]);
  },

  "a direct claim finds it wherever it waits": async (scene) => {
    const [id] = await scene.accept(0);
    await scene.settled(2, await scene.take(1, 1), failed(60 * SECOND));
    const request = { owner: "a", leaseMs: 30_000, lanes: [], ids: [id as string] };
    const [claimed] = await scene.store.claim({ ...request, ...scene.at(3) });
    assert.deepEqual([claimed?.id, claimed?.retried], [id, true]);
  },

  "ordered: a head that failed keeps its key's order, and only its key waits": async (scene) => {
    const ids = await scene.accept(0, ...["a", "a", "b"].map((orderingKey) => ({ topic: KEYED, orderingKey })));
    const heads = await scene.take(2, 1);
    const head = heads.find(({ id }) => id === ids[0]);
    const other = heads.find(({ id }) => id === ids[2]);
    assert.ok(head && other);
    await scene.settled(2, [head], failed(SECOND));
    await scene.settled(2, [other], DELIVERED);
    await scene.nothing(3);
    const again = await scene.takeOne(2 * SECOND);
    assert.deepEqual([again.id, again.attempt, again.retried], [ids[0], 2, true]);
    assert.equal((await seen(scene.store, ids[1] as string)).status, "pending");
  },

  "N1: the newest first, when asked for: what became due last, and nothing that is not due": async (scene) => {
    const [oldest, , third, newest, late] = await scene.accept(0, {}, {}, { delayMs: 10 }, { delayMs: 20 }, { delayMs: 9_000 });
    const [lane] = await scene.store.lanes(scene.at(100));
    assert.ok(lane);
    const claim = (ms: number, limit: number, from: From) => claimFrom(scene, ms, lane.lane, limit, from);
    assert.deepEqual(sorted(await claim(100, 2, "newest")), sorted([third as string, newest as string]));
    const [front] = await claim(101, 1, "oldest");
    assert.equal(front, oldest);
    assert.equal((await claim(10_000, 1, "newest"))[0], late);
    assert.equal((await claim(10_001, 5, "newest")).length, 1);
    assert.deepEqual(await scene.store.lanes(scene.at(10_002)), []);
  },

  "N1: the newest of an ordered lane are heads like any: due, the last first, and none that failed": async (scene) => {
    const failing = await scene.accept(0, ...["f", "f"].map((orderingKey) => ({ topic: KEYED, orderingKey })));
    await scene.settled(1, await scene.take(1, 1), failed(50, false));
    const keys = ["k", "k", "l", "m"];
    const ids = await scene.accept(
      2,
      ...keys.map((orderingKey, n) => ({ topic: KEYED, orderingKey, delayMs: n === 3 ? 9_000 : n })),
    );
    const [lane] = await scene.store.lanes(scene.at(100));
    const claim = (ms: number, limit: number, from: From = "newest") => claimFrom(scene, ms, lane?.lane as string, limit, from);
    assert.deepEqual(await claim(100, 1), [ids[2]]);
    assert.deepEqual(await claim(101, 5), [ids[0]], "what waits behind its head, is not due or failed before is none of them");
    assert.deepEqual(await claim(102, 5, "oldest"), [failing[0]]);
    assert.deepEqual(await claim(10_000, 5), [ids[3]]);
  },

  "N1: a suspect is none of the newest of an ordered lane, whether or not it failed before": async (scene) => {
    const ids = await scene.accept(0, ...["s", "t"].map((orderingKey) => ({ topic: KEYED, orderingKey })));
    const [first, second] = await scene.take(2, 1);
    assert.ok(first && second);
    await scene.settled(1, [first], retry(50, true, 1, true));
    await scene.settled(1, [second], retry(50, true, 1, false));
    const [lane] = await scene.store.lanes(scene.at(100));
    const claim = async (ms: number, from: From) => sorted(await claimFrom(scene, ms, lane?.lane as string, 5, from));
    assert.deepEqual(await claim(100, "newest"), []);
    assert.deepEqual(await claim(101, "oldest"), sorted(ids));
  },

  "N1: what is given back unstarted waits where it waited before, not as the newest": async (scene) => {
    for (const place of [{}, { topic: KEYED, orderingKey: "a" }]) {
      const [first] = await scene.accept(0, place);
      const held = await scene.take(1, 1, { leaseMs: 300 * SECOND });
      const later = "orderingKey" in place ? { ...place, orderingKey: "b" } : place;
      const [second] = await scene.accept(60 * SECOND, later);
      await scene.settled(120 * SECOND, held, RELEASE);
      const [lane] = await scene.store.lanes(scene.at(121 * SECOND));
      const newest = (ms: number) => claimFrom(scene, ms, lane?.lane as string, 1, "newest");
      assert.deepEqual([await newest(122 * SECOND), await newest(123 * SECOND)], [[second], [first]]);
    }
  },
};
