/**
 * Enqueue: what is accepted is there, whole and once, and what is refused leaves nothing behind.
 */
import assert from "node:assert/strict";
import { LIMITS } from "../../message/limits.ts";
import { countOf, DELIVERED, KEYED, PLAIN, refused, SECOND, seen } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

export const enqueueCases: Record<string, (scene: Scene) => Promise<void>> = {
  "OBX-7: results in the order given; each message is pending, due now, with no attempts": async (scene) => {
    const ids = await scene.accept(0, {}, {}, {});
    for (const id of ids) {
      const view = await seen(scene.store, id);
      assert.equal(view.status, "pending");
      assert.equal(view.attempts, 0);
      assert.deepEqual(view.nextAttemptAt, scene.at(0).now);
      assert.deepEqual(view.createdAt, scene.at(0).now);
      assert.deepEqual([view.heldReason, view.diedAt, view.resolution, view.lastError, view.lastCode], Array(5).fill(null));
    }
    assert.equal(await countOf(scene.store, "pending"), 3);
  },

  "a message is read back whole": async (scene) => {
    const given = scene.message({
      tenantId: "tenant-1",
      key: "charge/1",
      payload: '{"amount": 1}',
      priority: 7,
      traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
      schemaVersion: 3,
    });
    await scene.store.enqueue([given], scene.at(0));
    const view = await seen(scene.store, given.id);
    const { payloadHash: _, delayMs: __, ...fixed } = given;
    for (const [field, value] of Object.entries(fixed)) assert.deepEqual(view[field as keyof typeof view], value, field);
  },

  "an ordered message is read back with its ordering key": async (scene) => {
    const [id] = await scene.accept(0, { topic: KEYED, orderingKey: "account-1" });
    assert.equal((await seen(scene.store, id as string)).orderingKey, "account-1");
  },

  "a delay counts from the store's clock": async (scene) => {
    const [id] = await scene.accept(0, { delayMs: 90 * SECOND });
    assert.deepEqual((await seen(scene.store, id as string)).nextAttemptAt, scene.at(90 * SECOND).now);
  },

  "without `now` the store's own clock decides, and a message is due at once": async (scene) => {
    const message = scene.message();
    await scene.store.enqueue([message]);
    const lanes = (await scene.store.lanes()).map(({ lane }) => ({ lane, limit: 10 }));
    const claimed = await scene.store.claim({ owner: "worker", leaseMs: 30_000, lanes });
    assert.deepEqual(
      claimed.map(({ id }) => id),
      [message.id],
    );
  },

  "an unknown topic refuses the whole call with unknown_topic": async (scene) => {
    const messages = [scene.message(), scene.message({ topic: "test/nobody-declared-it" })];
    await refused("unknown_topic", () => scene.store.enqueue(messages, scene.at(0)));
    await refused("unknown_topic", () => scene.store.enqueue(messages, { ...scene.at(0), atomic: "each" }));
    assert.equal(await countOf(scene.store), 0);
  },

  "I1: the same message again, after an unknown commit, is accepted again and stays one row": async (scene) => {
    const messages = [scene.message(), scene.message({ key: "retry-1" })];
    const accepted = messages.map(({ id }) => ({ kind: "accepted", id }));
    assert.deepEqual(await scene.store.enqueue(messages, scene.at(0)), accepted);
    assert.deepEqual(await scene.store.enqueue(messages, scene.at(1)), accepted);
    assert.deepEqual(await scene.store.enqueue([messages[0]!], { ...scene.at(2), atomic: "each" }), [accepted[0]]);
    assert.equal(await countOf(scene.store), 2);
    const claimed = await scene.take(2, 10);
    assert.deepEqual(await scene.store.enqueue(messages, scene.at(11)), accepted, "while it is in flight");
    await scene.settled(12, claimed, DELIVERED);
    assert.deepEqual(await scene.store.enqueue(messages, scene.at(13)), accepted, "after it was delivered");
    await scene.nothing(20);
    assert.equal(await countOf(scene.store, "delivered"), 2);
  },

  "a retry together with new messages adds only the new ones": async (scene) => {
    const first = scene.message({ key: "one" });
    await scene.store.enqueue([first], scene.at(0));
    const batch = [first, scene.message({ key: "two" }), scene.message()];
    const results = await scene.store.enqueue(batch, scene.at(1));
    assert.deepEqual(
      results,
      batch.map(({ id }) => ({ kind: "accepted", id })),
    );
    assert.equal(await countOf(scene.store), 3);
  },

  "nothing to enqueue is no error": async (scene) => {
    assert.deepEqual(await scene.store.enqueue([], scene.at(0)), []);
  },

  "I10: the largest batch, over several topics, tenants and priorities, is accepted as one": async (scene) => {
    const fields = Array.from({ length: LIMITS.batchMessagesMax }, (_, i) => ({
      topic: i % 3 === 0 ? KEYED : PLAIN,
      orderingKey: i % 3 === 0 ? `account-${i % 7}` : null,
      tenantId: i % 5 === 0 ? null : `tenant-${i % 5}`,
      key: i % 2 === 0 ? `key-${i}` : null,
      priority: i % 3 === 0 ? 0 : i % 4,
    }));
    await scene.accept(0, ...fields);
    assert.equal(await countOf(scene.store, "pending"), LIMITS.batchMessagesMax);
  },

  "a direct try that failed is recorded as attempt 0 and spends no budget": async (scene) => {
    const [id] = await scene.accept(0, { directTry: { code: "http_500", error: "broken" }, delayMs: SECOND });
    const view = await seen(scene.store, id as string);
    assert.deepEqual([view.attempts, view.lastCode, view.lastError], [0, "http_500", "broken"]);
    const { attempts } = await scene.store.history(id as string);
    assert.deepEqual(
      attempts.map(({ attempt, counted, code, error }) => ({ attempt, counted, code, error })),
      [{ attempt: 0, counted: false, code: "http_500", error: "broken" }],
    );
    const claimed = await scene.takeOne(SECOND);
    assert.deepEqual([claimed.attempt, claimed.base, claimed.handedDown], [1, 0, true]);
  },
};
