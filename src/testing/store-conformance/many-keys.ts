/**
 * Many ordering keys (N16): what blocks one key, a delay, a retry, a person, a dead head or a message in flight,
 * hides no other key, however many such keys there are and however their names sort.
 */
import assert from "node:assert/strict";
import type { ClaimedMessage, NewMessage } from "../../message/message.ts";
import type { Settlement } from "../../message/settlement.ts";
import { DELIVERED, dead, hold, idsOf, KEYED, MINUTE, retry, SECOND, STRICT, sorted } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

const HOUR = 60 * MINUTE;
/** As many as one call takes. */
const BATCH = 1_000;

/** They sort before those of `free`. */
const keyOf = (n: number): string => `a-${String(n).padStart(6, "0")}`;

async function acceptMany(
  scene: Scene,
  ms: number,
  count: number,
  fields: (n: number) => Partial<NewMessage>,
): Promise<string[]> {
  const ids: string[] = [];
  for (let from = 0; from < count; from += BATCH) {
    const size = Math.min(BATCH, count - from);
    ids.push(...(await scene.accept(ms, ...Array.from({ length: size }, (_, i) => fields(from + i)))));
  }
  return ids;
}

/** What comes last, under the names that sort last, is what is claimed, and nothing else. */
async function free(scene: Scene, ms: number, topic: string): Promise<void> {
  const ids = await scene.accept(ms, ...["y", "z", "z"].map((orderingKey) => ({ topic, orderingKey })));
  const due = (await scene.store.lanes(scene.at(ms + 1))).filter((lane) => lane.ordered && lane.topic === topic);
  assert.ok(
    due.some(({ dueInMs }) => dueInMs <= 0),
    "the lane is due",
  );
  const heads = await scene.claim(ms + 1, { limit: 10 });
  assert.deepEqual(sorted(idsOf(heads)), sorted(ids.slice(0, 2)));
  await scene.settled(ms + 2, heads, DELIVERED);
  const last = await scene.claim(ms + 3, { limit: 10 });
  assert.deepEqual(idsOf(last), ids.slice(2));
  await scene.settled(ms + 4, last, DELIVERED);
  assert.deepEqual(await scene.claim(ms + 5, { limit: 10 }), []);
}

async function takeMany(scene: Scene, count: number, ms: number): Promise<ClaimedMessage[]> {
  const taken: ClaimedMessage[] = [];
  while (taken.length < count) taken.push(...(await scene.take(Math.min(BATCH, count - taken.length), ms)));
  return taken;
}

async function settleMany(scene: Scene, ms: number, messages: readonly ClaimedMessage[], settlement: Settlement): Promise<void> {
  for (let from = 0; from < messages.length; from += BATCH)
    await scene.settled(ms, messages.slice(from, from + BATCH), settlement);
}

/** `count` keys of two messages each, whose heads were tried and ended so. */
async function tried(scene: Scene, topic: string, count: number, settlement: Settlement): Promise<ClaimedMessage[]> {
  await acceptMany(scene, 0, count, (n) => ({ topic, orderingKey: keyOf(n) }));
  await acceptMany(scene, 0, count, (n) => ({ topic, orderingKey: keyOf(n) }));
  const heads = await takeMany(scene, count, 1);
  await settleMany(scene, 2, heads, settlement);
  return heads;
}

const keys = (messages: readonly ClaimedMessage[]): string[] => sorted(messages.map(({ orderingKey }) => orderingKey ?? ""));

export function manyKeysCases(count: number): Record<string, (scene: Scene) => Promise<void>> {
  const n = count.toLocaleString("en");
  return {
    [`N16: ${n} keys whose messages are delayed hide no other, and come when they are due`]: async (scene) => {
      const ids = await acceptMany(scene, 0, count, (i) => ({ topic: KEYED, orderingKey: keyOf(i), delayMs: HOUR }));
      await free(scene, 1, KEYED);
      assert.deepEqual(sorted(idsOf(await takeMany(scene, count, HOUR))), sorted(ids));
    },

    [`N16: ${n} keys whose heads wait for a retry hide no other, and the retries are made`]: async (scene) => {
      const heads = await tried(scene, KEYED, count, retry(HOUR));
      await free(scene, 3, KEYED);
      const again = await takeMany(scene, count, HOUR + SECOND);
      assert.deepEqual(sorted(idsOf(again)), sorted(idsOf(heads)));
      assert.ok(again.every(({ attempt }) => attempt === 2));
    },

    [`N16: ${n} keys closed by dead heads hide no other, and each opens by itself`]: async (scene) => {
      const heads = await tried(scene, STRICT, count, dead(true));
      await free(scene, 3, STRICT);
      const opened = [heads[0]!, heads[count - 1]!];
      for (const { id } of opened)
        await scene.store.intervene({ id, action: "resolve", actor: "p", reason: null, ...scene.at(20) });
      assert.deepEqual(keys(await scene.claim(21)), keys(opened));
    },

    [`N16: ${n} keys whose heads are held hide no other`]: async (scene) => {
      const heads = await tried(scene, KEYED, count, hold());
      await free(scene, 3, KEYED);
      const { id } = heads[count >> 1]!;
      await scene.store.intervene({ id, action: "discard", actor: "p", reason: null, ...scene.at(20) });
      assert.deepEqual(keys(await scene.claim(21)), [heads[count >> 1]!.orderingKey]);
    },

    [`N16: a key in flight with ${n} behind it hides no other, and goes on in its order`]: async (scene) => {
      const ids = await acceptMany(scene, 0, count + 1, () => ({ topic: KEYED, orderingKey: "a" }));
      const head = await scene.claim(1);
      assert.deepEqual(idsOf(head), ids.slice(0, 1));
      await free(scene, 2, KEYED);
      // One by one as well, as callers bring them.
      for (let i = 0; i < 3; i++) ids.push(...(await scene.accept(10 + i, { topic: KEYED, orderingKey: "a" })));
      await free(scene, 20, KEYED);
      await scene.settled(30, head, DELIVERED);
      for (let i = 1; i < Math.min(10, count); i++) {
        const next = await scene.claim(30 + i);
        assert.deepEqual(idsOf(next), [ids[i]]);
        await scene.settled(30 + i, next, DELIVERED);
      }
    },

    [`N16: a key that waits for its delayed head with ${n} behind it hides no other`]: async (scene) => {
      const [head] = await scene.accept(0, { topic: KEYED, orderingKey: "a", delayMs: HOUR });
      await acceptMany(scene, 1, count, () => ({ topic: KEYED, orderingKey: "a" }));
      await free(scene, 2, KEYED);
      assert.deepEqual(idsOf(await scene.claim(HOUR)), [head]);
    },

    [`N16: ${n} keys take turns: none is served twice before all were served once`]: async (scene) => {
      await acceptMany(scene, 0, count, (i) => ({ topic: KEYED, orderingKey: keyOf(i) }));
      await acceptMany(scene, 1, count, (i) => ({ topic: KEYED, orderingKey: keyOf(count - 1 - i) }));
      const piece = Math.min(BATCH, Math.ceil(count / 5));
      const served = new Set<string>();
      for (let ms = 2; served.size < count; ms++) {
        const batch = await scene.claim(ms, { limit: Math.min(piece, count - served.size) });
        assert.ok(batch.length > 0, `${served.size} of ${count} keys were served`);
        for (const { orderingKey } of batch) {
          assert.ok(!served.has(orderingKey ?? ""), `${orderingKey} was served twice`);
          served.add(orderingKey ?? "");
        }
        await scene.settled(ms, batch, DELIVERED);
      }
    },
  };
}
