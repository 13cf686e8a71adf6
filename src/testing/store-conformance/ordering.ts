/**
 * Ordering keys (DO-10): of each key at most one message is in flight, the one enqueued first, and nothing passes a head that
 * waits. What a dead head does to its key is the topic's choice: `key` goes on, `strict` waits for a person.
 */
import assert from "node:assert/strict";
import type { ClaimedMessage, NewMessage } from "../../message/message.ts";
import type { Intervention } from "../../store/store.ts";
import { DELIVERED, dead, hold, idsOf, KEYED, PLAIN, RELEASE, retry, SECOND, STRICT, sorted } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

/** Messages of a topic, one for each ordering key named. */
async function ordered(scene: Scene, topic: string, ...keys: (string | Partial<NewMessage>)[]): Promise<string[]> {
  return scene.accept(0, ...keys.map((key) => ({ topic, ...(typeof key === "string" ? { orderingKey: key } : key) })));
}

/** Takes the one message that may be claimed now: this one, and no other beside it. */
async function takeHead(scene: Scene, ms: number, id: string | undefined): Promise<ClaimedMessage[]> {
  const taken = await scene.take(1, ms);
  assert.deepEqual(idsOf(taken), [id]);
  await scene.nothing(ms);
  return taken;
}

async function intervene(scene: Scene, ms: number, action: Intervention["action"], id: string | undefined): Promise<void> {
  const result = await scene.store.intervene({ id: id as string, action, actor: "person", reason: null, ...scene.at(ms) });
  assert.equal(result.kind, "done");
}

export const orderingCases: Record<string, (scene: Scene) => Promise<void>> = {
  "none: an ordering key means nothing": async (scene) => {
    await ordered(scene, PLAIN, "a", "a", "a");
    assert.ok((await scene.store.lanes(scene.at(1))).every((lane) => !lane.ordered));
    assert.equal((await scene.claim(1)).length, 3);
  },

  "no ordering key on an ordered topic: no order": async (scene) => {
    await ordered(scene, KEYED, { orderingKey: null }, { orderingKey: null }, "a");
    const lanes = await scene.store.lanes(scene.at(1));
    assert.deepEqual(sorted(lanes.map(({ ordered: is }) => String(is))), ["false", "true"], "lanes of their own");
    assert.equal((await scene.claim(1, { lanes: ({ ordered: is }) => !is })).length, 2);
  },

  "DO-10: one in flight for each key, in the order of enqueue; other keys go on": async (scene) => {
    const [a1, b1, a2, b2] = await ordered(scene, KEYED, "a", "b", "a", "b");
    const lanes = await scene.store.lanes(scene.at(1));
    assert.deepEqual(
      lanes.map(({ topic, ordered: is }) => [topic, is]),
      [[KEYED, true]],
    );
    const heads = await scene.take(2, 1);
    assert.deepEqual(sorted(idsOf(heads)), sorted([a1!, b1!]));
    assert.deepEqual(sorted(heads.map(({ orderingKey }) => orderingKey ?? "")), ["a", "b"]);
    await scene.nothing(2);
    await scene.settled(
      3,
      heads.filter(({ id }) => id === a1),
      DELIVERED,
    );
    await takeHead(scene, 4, a2);
    await scene.settled(
      5,
      heads.filter(({ id }) => id === b1),
      DELIVERED,
    );
    await takeHead(scene, 6, b2);
  },

  "the same ordering key of another tenant or topic is another key": async (scene) => {
    const fields = [{ topic: KEYED, tenantId: "t1" }, { topic: KEYED, tenantId: "t2" }, { topic: KEYED }, { topic: STRICT }];
    await scene.accept(0, ...fields.map((each) => ({ ...each, orderingKey: "a" })));
    await scene.take(4, 1);
  },

  "a head that is not due yet blocks its key and no other": async (scene) => {
    const [first, second, other] = await ordered(scene, KEYED, { orderingKey: "a", delayMs: 5_000 }, "a", "b");
    await takeHead(scene, 1, other);
    await scene.nothing(4_999);
    await scene.settled(5_001, await takeHead(scene, 5_000, first), DELIVERED);
    await takeHead(scene, 5_002, second);
  },

  "a retry goes back to the front of its key and blocks it while it waits": async (scene) => {
    const [first, second] = await ordered(scene, KEYED, "a", "a");
    await scene.settled(2, await takeHead(scene, 1, first), retry(10 * SECOND));
    await scene.nothing(9 * SECOND);
    const again = await takeHead(scene, 11 * SECOND, first);
    assert.equal(again[0]?.attempt, 2);
    await scene.settled(12 * SECOND, again, DELIVERED);
    await takeHead(scene, 13 * SECOND, second);
  },

  "a released head stays the head": async (scene) => {
    const [first] = await ordered(scene, KEYED, "a", "a");
    await scene.settled(2, await takeHead(scene, 1, first), RELEASE);
    assert.equal((await takeHead(scene, 3, first))[0]?.attempt, 1);
  },

  "a suspect that is released is as suspect as before": async (scene) => {
    await ordered(scene, KEYED, "a");
    await scene.accept(0);
    await scene.settled(2, await scene.take(2, 1), retry(0, false, 1));
    const suspicions = async (ms: number): Promise<string[]> => {
      const taken = await scene.take(2, ms);
      await scene.settled(ms + 1, taken, RELEASE);
      return sorted(taken.map(({ id, suspicion }) => `${id} ${suspicion}`));
    };
    // Or a message that kills workers goes on for as long as others cannot deliver it and give it back.
    const before = await suspicions(3);
    for (const ms of [5, 7]) assert.deepEqual(await suspicions(ms), before);
  },

  "a held head blocks its key until it is discarded": async (scene) => {
    const [first, second] = await ordered(scene, KEYED, "a", "a");
    await scene.settled(2, await takeHead(scene, 1, first), hold());
    await scene.nothing(100 * SECOND);
    await intervene(scene, 101 * SECOND, "discard", first);
    await takeHead(scene, 102 * SECOND, second);
  },

  "a held head that is replayed comes first": async (scene) => {
    const [first, second] = await ordered(scene, STRICT, "a", "a");
    await scene.settled(2, await takeHead(scene, 1, first), hold());
    await intervene(scene, 3, "replay", first);
    await scene.settled(5, await takeHead(scene, 4, first), DELIVERED);
    await takeHead(scene, 6, second);
  },

  "a discarded message in the middle is passed over": async (scene) => {
    const [first, second, third] = await ordered(scene, STRICT, "a", "a", "a");
    await intervene(scene, 1, "discard", second);
    await scene.settled(3, await takeHead(scene, 2, first), DELIVERED);
    await takeHead(scene, 4, third);
  },

  "key: a dead head lets the next one pass, and comes back to the front when replayed": async (scene) => {
    const [first, second, third] = await ordered(scene, KEYED, "a", "a", "a");
    await scene.settled(2, await takeHead(scene, 1, first), dead(false));
    const next = await takeHead(scene, 3, second);
    await intervene(scene, 4, "replay", first);
    await scene.nothing(5);
    await scene.settled(6, next, DELIVERED);
    await scene.settled(8, await takeHead(scene, 7, first), DELIVERED);
    await takeHead(scene, 9, third);
  },

  "strict: a dead head keeps its key closed, and no other; a replay opens it from the front": async (scene) => {
    const [first, second] = await ordered(scene, STRICT, "a", "a");
    await scene.settled(2, await takeHead(scene, 1, first), dead(true));
    await scene.nothing(3);
    const [other] = await scene.accept(4, { topic: STRICT, orderingKey: "b" });
    await takeHead(scene, 5, other);
    await scene.nothing(1_000 * SECOND);
    await intervene(scene, 1_001 * SECOND, "replay", first);
    await scene.settled(1_003 * SECOND, await takeHead(scene, 1_002 * SECOND, first), DELIVERED);
    await takeHead(scene, 1_004 * SECOND, second);
  },

  "strict: resolving the dead head opens its key": async (scene) => {
    const [first, second] = await ordered(scene, STRICT, "a", "a");
    await scene.settled(2, await takeHead(scene, 1, first), dead(true));
    await intervene(scene, 3, "resolve", first);
    await takeHead(scene, 4, second);
  },

  "strict: discarding the dead head opens its key, also for what was enqueued meanwhile": async (scene) => {
    const [first] = await ordered(scene, STRICT, "a");
    await scene.settled(2, await takeHead(scene, 1, first), dead(true));
    const [second] = await scene.accept(3, { topic: STRICT, orderingKey: "a" });
    await scene.nothing(4);
    await intervene(scene, 5, "discard", first);
    await takeHead(scene, 6, second);
  },

  "CON-20: a lost lease keeps its key closed until it is settled; the same message comes again first": async (scene) => {
    const [first, second] = await ordered(scene, KEYED, "a", "a");
    const stale = await takeHead(scene, 1, first);
    await scene.nothing(31 * SECOND);
    const taken = await scene.store.reclaim({ owner: "other", leaseMs: 30_000, limit: 10, ...scene.at(32 * SECOND) });
    assert.deepEqual(idsOf(taken), [first]);
    assert.deepEqual(await scene.settle(33 * SECOND, stale, DELIVERED), ["lost"]);
    await scene.nothing(34 * SECOND);
    await scene.settled(35 * SECOND, taken, retry());
    await scene.settled(37 * SECOND, await takeHead(scene, 36 * SECOND, first), DELIVERED);
    await takeHead(scene, 38 * SECOND, second);
  },
};
