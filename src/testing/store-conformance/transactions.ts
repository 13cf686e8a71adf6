/**
 * The caller's transaction: the message exists if and only if the business write does (OBX-14). A store without caller
 * transactions says so instead of writing on the side.
 */
import assert from "node:assert/strict";
import { sleep, systemClock } from "../../platform/clock.ts";
import type { Transaction } from "../../store/store.ts";
import { countOf, refused, seen } from "./fixtures.ts";
import type { OpenTransaction } from "./harness.ts";
import type { Scene } from "./scene.ts";

const A = '{"amount":1}';
const B = '{"amount":2}';

async function begin(scene: Scene): Promise<OpenTransaction> {
  assert.ok(scene.harness.transaction);
  return scene.harness.transaction(scene.store);
}

/** Runs with a transaction that is rolled back at the end unless it was ended before. */
async function inTransaction(scene: Scene, run: (open: OpenTransaction) => Promise<void>): Promise<void> {
  const open = await begin(scene);
  let ended = false;
  const end = (how: "commit" | "rollback") => async () => {
    if (ended) return;
    ended = true;
    await open[how]();
  };
  try {
    await run({ tx: open.tx, commit: end("commit"), rollback: end("rollback") });
  } finally {
    await end("rollback")();
  }
}

export const transactionCases: Record<string, (scene: Scene) => Promise<void>> = {
  "OBX-14: invisible before the commit, there after it": (scene) =>
    inTransaction(scene, async ({ tx, commit }) => {
      const message = scene.message({ key: "k" });
      assert.deepEqual(await scene.store.enqueue([message], { ...scene.at(0), tx }), [{ kind: "accepted", id: message.id }]);
      assert.equal(await scene.store.get(message.id), null);
      await scene.nothing(1);
      await commit();
      assert.equal((await scene.takeOne(2)).id, message.id);
    }),

  "OBX-14: a rollback leaves nothing, and the key is free": (scene) =>
    inTransaction(scene, async ({ tx, rollback }) => {
      const message = scene.message({ key: "k", payload: A });
      await scene.store.enqueue([message, scene.message()], { ...scene.at(0), tx });
      await rollback();
      assert.equal(await countOf(scene.store), 0);
      await scene.accept(1, { key: "k", payload: B });
    }),

  "DO-5: in one transaction a key again is a duplicate, with another payload a conflict": (scene) =>
    inTransaction(scene, async ({ tx, commit }) => {
      const message = scene.message({ key: "k", payload: A });
      const options = { ...scene.at(0), tx };
      await scene.store.enqueue([message], options);
      const same = await scene.store.enqueue([scene.message({ key: "k", payload: A })], options);
      assert.deepEqual(same, [{ kind: "duplicate", id: message.id }]);
      const other = await scene.store.enqueue([scene.message({ key: "k", payload: B })], options);
      assert.deepEqual(other, [{ kind: "conflict", id: message.id }]);
      await commit();
      assert.equal(await countOf(scene.store), 1);
    }),

  "a conflict writes nothing of its call and leaves the transaction usable": (scene) =>
    inTransaction(scene, async ({ tx, commit }) => {
      const [taken] = await scene.accept(0, { key: "taken", payload: A });
      const kept = scene.message();
      const refusedOne = scene.message({ key: "free" });
      const options = { ...scene.at(1), tx };
      await scene.store.enqueue([kept], options);
      const results = await scene.store.enqueue([refusedOne, scene.message({ key: "taken", payload: B })], options);
      assert.deepEqual(results[1], { kind: "conflict", id: taken });
      await commit();
      assert.equal((await seen(scene.store, kept.id)).status, "pending");
      assert.equal(await scene.store.get(refusedOne.id), null);
      assert.equal(await countOf(scene.store), 2);
      await scene.accept(2, { key: "free", payload: B });
    }),

  "two transactions, one key: the second waits for the first and is its duplicate": (scene) =>
    inTransaction(scene, (first) =>
      inTransaction(scene, async (second) => {
        const message = scene.message({ key: "k", payload: A });
        await scene.store.enqueue([message], { ...scene.at(0), tx: first.tx });
        const waiting = scene.store.enqueue([scene.message({ key: "k", payload: A })], { ...scene.at(0), tx: second.tx });
        const early = await Promise.race([waiting.then(() => "answered"), sleep(systemClock, 150).then(() => "waiting")]);
        assert.equal(early, "waiting", "nobody can know yet whether the first one commits");
        await first.commit();
        assert.deepEqual(await waiting, [{ kind: "duplicate", id: message.id }]);
        await second.commit();
        assert.equal(await countOf(scene.store), 1);
      }),
    ),

  "two transactions, one key: when the first rolls back the second is accepted": (scene) =>
    inTransaction(scene, (first) =>
      inTransaction(scene, async (second) => {
        await scene.store.enqueue([scene.message({ key: "k", payload: A })], { ...scene.at(0), tx: first.tx });
        const message = scene.message({ key: "k", payload: B });
        const waiting = scene.store.enqueue([message], { ...scene.at(0), tx: second.tx });
        await sleep(systemClock, 50);
        await first.rollback();
        assert.deepEqual(await waiting, [{ kind: "accepted", id: message.id }]);
        await second.commit();
        assert.equal((await seen(scene.store, message.id)).payload, B);
      }),
    ),

  "I1: the same message again in a second transaction is one row": (scene) =>
    inTransaction(scene, (first) =>
      inTransaction(scene, async (second) => {
        const messages = [scene.message(), scene.message({ key: "k" })];
        const accepted = messages.map(({ id }) => ({ kind: "accepted", id }));
        assert.deepEqual(await scene.store.enqueue(messages, { ...scene.at(0), tx: first.tx }), accepted);
        await first.commit();
        assert.deepEqual(await scene.store.enqueue(messages, { ...scene.at(1), tx: second.tx }), accepted);
        await second.commit();
        assert.equal(await countOf(scene.store), 2);
      }),
    ),

  "an unknown topic is told apart inside a transaction too": (scene) =>
    inTransaction(scene, async ({ tx }) => {
      const message = scene.message({ topic: "test/nobody-declared-it" });
      await refused("unknown_topic", () => scene.store.enqueue([message], { ...scene.at(0), tx }));
    }),

  "DO-19: due is the time of the enqueue, not of the transaction's start": (scene) =>
    inTransaction(scene, async ({ tx, commit }) => {
      const [first, late] = [scene.message(), scene.message()];
      await scene.store.enqueue([scene.message()], { tx });
      await sleep(systemClock, 60);
      await scene.store.enqueue([first]);
      await scene.store.enqueue([late], { tx });
      await commit();
      const [earlier, later] = [await seen(scene.store, first.id), await seen(scene.store, late.id)];
      assert.ok(later.createdAt >= earlier.createdAt);
      assert.ok((later.nextAttemptAt ?? 0) >= (earlier.nextAttemptAt ?? 1));
    }),

  "DO-21: what commits late is delivered, although later ids went before it": (scene) =>
    inTransaction(scene, async ({ tx, commit }) => {
      const late = scene.message();
      await scene.store.enqueue([late], { ...scene.at(0), tx });
      await scene.accept(1, {}, {}, {});
      for (let i = 0; i < 3; i++) await scene.takeOne(2 + i);
      await commit();
      assert.equal((await scene.takeOne(10)).id, late.id);
    }),

  "what is not a transaction is refused with not_a_transaction": async (scene) => {
    if (!scene.harness.pool) return;
    const tx = (await scene.harness.pool(scene.store)) as Transaction;
    await refused("not_a_transaction", () => scene.store.enqueue([scene.message()], { ...scene.at(0), tx }));
    assert.equal(await countOf(scene.store), 0);
  },
};

export const noTransactionCases: Record<string, (scene: Scene) => Promise<void>> = {
  "a store without caller transactions refuses one with not_a_transaction": async (scene) => {
    const tx: Transaction = { query: async () => ({ rows: [] }) };
    await refused("not_a_transaction", () => scene.store.enqueue([scene.message()], { ...scene.at(0), tx }));
    assert.equal(await countOf(scene.store), 0);
  },
};
