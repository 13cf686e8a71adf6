/**
 * The place in an order is the store's (N17): a message whose enqueue was answered before the next one began comes first, whatever
 * their ids, their producers' clocks and their priorities say, and it keeps that place through retries, lost leases, holds and replays.
 */
import assert from "node:assert/strict";
import type { NewMessage } from "../../message/message.ts";
import type { Clock } from "../../platform/clock.ts";
import { systemClock } from "../../platform/clock.ts";
import { createIds } from "../../platform/ids.ts";
import { DELIVERED, dead, hold, idsOf, KEYED, newMessage, RELEASE, retry, SECOND, STRICT } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

/** The ids of a producer whose clock is off by so much. */
function idsOff(offMs: number): () => string {
  const clock: Clock = Object.create(systemClock, { wallMs: { value: () => systemClock.wallMs() + offMs } });
  return createIds(clock);
}

/**
 * Messages of one key, enqueued one after the other, by two alternating producers whose clocks differ, the one behind first and
 * last.
 */
async function skewed(scene: Scene, topic: string, count: number, offMs = 250): Promise<string[]> {
  const stores = await scene.instances(2);
  const makers = [idsOff(offMs), idsOff(0)];
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const message = newMessage(makers[i % 2]!(), { topic, orderingKey: "a", priority: i % 3 });
    await stores[i % 2]!.enqueue([message], scene.at(0));
    ids.push(message.id);
  }
  assert.notDeepEqual([...ids].sort(), ids, "the ids say another order");
  return ids;
}

/** Delivers what is left of the key, one by one, and says in which order it came. */
async function drained(scene: Scene, ms: number): Promise<string[]> {
  const came: string[] = [];
  for (let at = ms; ; at++) {
    const batch = await scene.claim(at);
    if (batch.length === 0) return came;
    assert.equal(batch.length, 1, "one in flight");
    came.push(batch[0]!.id);
    await scene.settled(at, batch, DELIVERED);
  }
}

export const placeCases: Record<string, (scene: Scene) => Promise<void>> = {
  "N17: the order is that of enqueue, with two producers whose clocks differ": async (scene) => {
    const ids = await skewed(scene, KEYED, 8);
    assert.deepEqual(await drained(scene, 1), ids);
  },

  "N17: a clock that was set back by a minute changes nothing": async (scene) => {
    const before = scene.message({ topic: KEYED, orderingKey: "a" });
    const after = newMessage(idsOff(-60 * SECOND)(), { topic: KEYED, orderingKey: "a" });
    await scene.store.enqueue([before], scene.at(0));
    await scene.store.enqueue([after], scene.at(0));
    assert.deepEqual(await drained(scene, 1), [before.id, after.id]);
  },

  "N17: the messages of one call keep the order of the call, whatever their ids": async (scene) => {
    const fields = { topic: KEYED, orderingKey: "a" };
    const messages: NewMessage[] = Array.from({ length: 5 }, () => scene.message(fields)).reverse();
    const other = scene.message({ topic: KEYED, orderingKey: "b", key: "k" });
    await scene.store.enqueue([...messages.slice(0, 3), other, ...messages.slice(3)], scene.at(0));
    assert.deepEqual(idsOf((await scene.claim(1)).sort((a, b) => (a.orderingKey! < b.orderingKey! ? -1 : 1))), [
      messages[0]!.id,
      other.id,
    ]);
  },

  "N17: calls of one process that were not awaited keep their order": async (scene) => {
    const messages = Array.from({ length: 60 }, () => scene.message({ topic: KEYED, orderingKey: "a" })).reverse();
    const calls: Promise<unknown>[] = [];
    for (const [i, message] of messages.entries()) {
      calls.push(scene.store.enqueue([message], {}));
      if (i % 20 === 19) await calls[i - 15];
    }
    await Promise.all(calls);
    assert.deepEqual(await drained(scene, SECOND), idsOf(messages));
  },

  "N17: retry, release and a lost lease keep the place": async (scene) => {
    const ids = await skewed(scene, KEYED, 4);
    await scene.settled(2, await scene.take(1, 1), retry(0));
    await scene.settled(4, await scene.take(1, 3), RELEASE);
    await scene.take(1, 5);
    const lost = await scene.store.reclaim({ owner: "other", leaseMs: 30_000, limit: 10, ...scene.at(60 * SECOND) });
    assert.deepEqual(idsOf(lost), ids.slice(0, 1));
    await scene.settled(61 * SECOND, lost, retry(0));
    assert.deepEqual(await drained(scene, 62 * SECOND), ids);
  },

  "N17: a held message that is replayed keeps its place": async (scene) => {
    const ids = await skewed(scene, KEYED, 4);
    await scene.settled(2, await scene.take(1, 1), hold());
    await scene.store.intervene({ id: ids[0]!, action: "replay", actor: "p", reason: null, ...scene.at(3) });
    assert.deepEqual(await drained(scene, 4), ids);
  },

  "N17: key: dead letters that are replayed go first among what waits, in their order": async (scene) => {
    const ids = await skewed(scene, KEYED, 6);
    for (let ms = 1; ms <= 4; ms++) await scene.settled(ms, await scene.take(1, ms), dead(false));
    for (const i of [3, 0, 2]) {
      await scene.store.intervene({ id: ids[i]!, action: "replay", actor: "p", reason: null, ...scene.at(10 + i) });
    }
    assert.deepEqual(await drained(scene, 20), [ids[0], ids[2], ids[3], ids[4], ids[5]]);
  },

  "N17: strict: a dead head that is replayed goes first": async (scene) => {
    const ids = await skewed(scene, STRICT, 4);
    await scene.settled(2, await scene.take(1, 1), dead(true));
    await scene.nothing(3);
    await scene.store.intervene({ id: ids[0]!, action: "replay", actor: "p", reason: null, ...scene.at(4) });
    assert.deepEqual(await drained(scene, 5), ids);
  },
};
