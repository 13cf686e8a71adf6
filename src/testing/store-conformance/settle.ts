/**
 * Settling: each kind of settlement does what it says and nothing else, one by one, in batches over several leases, and
 * piece by piece over one.
 */
import assert from "node:assert/strict";
import type { Suspicion } from "../../message/message.ts";
import { countOf, DAY, DELIVERED, dead, hold, idsOf, RELEASE, retry, SECOND, seen } from "./fixtures.ts";
import { type Scene, settles } from "./scene.ts";

async function one(scene: Scene): Promise<string> {
  const [id] = await scene.accept(0);
  return id as string;
}

export const settleCases: Record<string, (scene: Scene) => Promise<void>> = {
  "delivered is the end": async (scene) => {
    const id = await one(scene);
    await scene.settled(2, await scene.take(1, 1), DELIVERED);
    const view = await seen(scene.store, id);
    assert.deepEqual([view.status, view.attempts, view.nextAttemptAt, view.resolution], ["delivered", 1, null, null]);
    await scene.nothing(100 * DAY);
    const { attempts } = await scene.store.history(id);
    assert.deepEqual(attempts, [
      {
        attempt: 1,
        outcome: "delivered",
        counted: true,
        at: scene.at(2).now,
        durationMs: 5,
        code: null,
        error: null,
        nextAttemptAt: null,
      },
    ]);
  },

  "a duplicate at the receiver is delivered, and recorded as what it was": async (scene) => {
    const id = await one(scene);
    await scene.settled(2, await scene.take(1, 1), { kind: "delivered", outcome: "duplicate" });
    assert.equal((await seen(scene.store, id)).status, "delivered");
    assert.equal((await scene.store.history(id)).attempts[0]?.outcome, "duplicate");
  },

  "a counted retry waits its delay and has the next number": async (scene) => {
    const id = await one(scene);
    await scene.settled(1_000, await scene.take(1, 1), retry(5_000));
    const view = await seen(scene.store, id);
    assert.deepEqual([view.status, view.attempts, view.nextAttemptAt], ["pending", 1, scene.at(6_000).now]);
    assert.deepEqual([view.lastCode, view.lastError], ["http_503", "unavailable"]);
    await scene.nothing(5_999);
    const again = await scene.takeOne(6_000);
    assert.deepEqual([again.id, again.attempt, again.base], [id, 2, 0]);
    await scene.settled(6_001, [again], DELIVERED);
    const { lastCode, lastError } = await seen(scene.store, id);
    assert.deepEqual([lastCode, lastError], ["http_503", "unavailable"], "the last failed attempt's, also once it is delivered");
  },

  "an uncounted retry gives its number back and leaves a row": async (scene) => {
    const id = await one(scene);
    await scene.settled(2, await scene.take(1, 1), retry(0, false));
    assert.equal((await seen(scene.store, id)).attempts, 0);
    assert.equal((await scene.takeOne(3)).attempt, 1);
    const { attempts } = await scene.store.history(id);
    assert.deepEqual(
      attempts.map(({ attempt, counted }) => [attempt, counted]),
      [[1, false]],
    );
  },

  "suspects wait in lanes of their own": async (scene) => {
    const id = await one(scene);
    for (const [i, suspicion] of ([1, 2, 2, 0] as Suspicion[]).entries()) {
      const ms = i * 10;
      await scene.settled(ms + 2, await scene.take(1, ms + 1), retry(0, false, suspicion));
      const lanes = await scene.store.lanes(scene.at(ms + 3));
      assert.deepEqual(
        lanes.map((lane) => lane.suspicion),
        [suspicion],
      );
    }
    const claimed = await scene.takeOne(100);
    assert.deepEqual([claimed.id, claimed.suspicion, claimed.attempt], [id, 0, 1]);
  },

  "a suspect keeps its suspicion when it is claimed, and does not share a lane with the innocent": async (scene) => {
    await scene.accept(0, {}, {});
    await scene.settled(2, await scene.take(1, 1), retry(0, false, 2));
    const lanes = await scene.store.lanes(scene.at(3));
    assert.equal(lanes.length, 2);
    const suspect = await scene.takeOne(3, { lanes: ({ suspicion }) => suspicion === 2 });
    assert.equal(suspect.suspicion, 2);
  },

  "a hold is pending and never due": async (scene) => {
    const id = await one(scene);
    await scene.settled(2, await scene.take(1, 1), hold());
    const view = await seen(scene.store, id);
    assert.deepEqual([view.status, view.heldReason, view.nextAttemptAt, view.attempts], ["pending", "outcome_unknown", null, 1]);
    assert.deepEqual([view.lastCode, view.lastError], ["timeout", "no answer"]);
    await scene.nothing(400 * DAY);
  },

  "an uncounted hold spends no attempt": async (scene) => {
    const id = await one(scene);
    await scene.settled(2, await scene.take(1, 1), hold(false));
    assert.equal((await seen(scene.store, id)).attempts, 0);
  },

  "dead is an open dead letter with its reason": async (scene) => {
    const id = await one(scene);
    await scene.settled(2, await scene.take(1, 1), dead());
    const view = await seen(scene.store, id);
    assert.deepEqual([view.status, view.resolution, view.diedAt, view.nextAttemptAt], ["dead", "open", scene.at(2).now, null]);
    assert.deepEqual([view.attempts, view.lastCode, view.lastError], [1, "http_422", "refused"]);
    await scene.nothing(100 * DAY);
  },

  "a release is as if it had not been claimed": async (scene) => {
    const [id, other] = await scene.accept(0, {}, {});
    const claimed = await scene.take(2, 1);
    await scene.settled(2, claimed, RELEASE);
    const view = await seen(scene.store, id as string);
    assert.deepEqual([view.status, view.attempts, view.lastError], ["pending", 0, null]);
    assert.deepEqual((await scene.store.history(id as string)).attempts, []);
    const again = await scene.take(2, 3);
    assert.deepEqual(idsOf(again), [id, other]);
    assert.deepEqual(
      again.map(({ attempt }) => attempt),
      [1, 1],
    );
  },

  "I5: each attempt leaves a row with its reason, oldest first": async (scene) => {
    const id = await one(scene);
    await scene.settled(1_000, await scene.take(1, 1), retry(1_000));
    await scene.settled(3_000, await scene.take(1, 2_000), {
      kind: "retry",
      delayMs: 0,
      counted: true,
      suspicion: 0,
      outcome: "unknown",
      code: null,
      error: null,
    });
    await scene.settled(5_000, await scene.take(1, 4_000), DELIVERED);
    const { attempts } = await scene.store.history(id);
    assert.deepEqual(
      attempts.map(({ attempt, outcome, at, code, nextAttemptAt }) => [attempt, outcome, at, code, nextAttemptAt]),
      [
        [1, "retry", scene.at(1_000).now, "http_503", scene.at(2_000).now],
        [2, "unknown", scene.at(3_000).now, null, scene.at(3_000).now],
        [3, "delivered", scene.at(5_000).now, null, null],
      ],
    );
    assert.equal((await seen(scene.store, id)).attempts, 3);
  },

  "some of a lease: the rest stays claimed, the lease goes with the last one": async (scene) => {
    await scene.accept(0, {}, {}, {});
    const [first, second, third] = await scene.take(3, 1);
    assert.ok(first && second && third);
    await scene.settled(2, [second], DELIVERED);
    assert.deepEqual(await scene.store.extend([first.claim], 60_000, scene.at(3)), ["extended"]);
    assert.equal(await countOf(scene.store, "processing"), 2);
    await scene.settled(4, [first], retry());
    await scene.settled(5, [third], dead());
    assert.deepEqual(await scene.store.extend([third.claim], 60_000, scene.at(6)), ["lost"]);
    assert.equal((await scene.takeOne(7)).id, first.id);
  },

  "delivered piece by piece, over several leases at once: each once, and only what is left is taken over": async (scene) => {
    await scene.accept(0, ...Array.from({ length: 7 }, () => ({})));
    const [a, b, c, d] = await scene.take(4, 1);
    const [e, f, g] = await scene.take(3, 2);
    assert.ok(a && b && c && d && e && f && g);
    await scene.settled(3, [d, f, b], DELIVERED);
    assert.deepEqual(await scene.settle(4, [f, g, d], DELIVERED), ["lost", "settled", "lost"]);
    assert.equal(await countOf(scene.store, "processing"), 3);
    const left = await scene.store.reclaim({ owner: "other", leaseMs: 30_000, limit: 10, ...scene.at(31 * SECOND) });
    assert.deepEqual(new Set(idsOf(left)), new Set(idsOf([a, c, e])));
    assert.deepEqual(await scene.settle(31 * SECOND, [a, e], DELIVERED), ["lost", "lost"]);
    for (const one of left) await scene.settled(32 * SECOND, [one], DELIVERED);
    assert.equal(await countOf(scene.store, "delivered"), 7);
    for (const { id } of [a, b, c, d, e, f, g]) assert.equal((await scene.store.history(id)).attempts.length, 1);
    await scene.nothing(DAY);
  },

  "one settle over several leases and every kind, answered in order": async (scene) => {
    await scene.accept(0, ...Array.from({ length: 6 }, () => ({})));
    const claimed = [...(await scene.take(2, 1)), ...(await scene.take(1, 2)), ...(await scene.take(3, 3))];
    const kinds = [DELIVERED, retry(SECOND), dead(), hold(), RELEASE, DELIVERED];
    const mixed = kinds.map((settlement, i) => settles([claimed[i]!], settlement)[0]!);
    // Leases interleaved, so that grouping them must not change the order of the answers.
    const order = [0, 3, 2, 4, 1, 5].map((i) => mixed[i]!);
    const stale = { ...order[0]!, claim: { ...order[0]!.claim, token: order[2]!.claim.token } };
    const results = await scene.store.settle([stale, ...order], scene.at(4));
    assert.deepEqual(results, ["lost", ...Array<string>(6).fill("settled")]);
    const statuses = await Promise.all(claimed.map(async ({ id }) => (await seen(scene.store, id)).status));
    assert.deepEqual(statuses, ["delivered", "pending", "dead", "pending", "pending", "delivered"]);
  },

  "I10: a thousand at once, and none": async (scene) => {
    await scene.accept(0, ...Array.from({ length: 1_000 }, () => ({})));
    await scene.settled(2, await scene.take(1_000, 1), DELIVERED);
    assert.equal(await countOf(scene.store, "delivered"), 1_000);
    assert.deepEqual(await scene.store.settle([], scene.at(3)), []);
    assert.deepEqual(await scene.store.extend([], 30_000, scene.at(3)), []);
  },
};
