/**
 * What a caller may still change about a message that waits: cancel ends it, reschedule moves the moment it is due. Both only while it
 * is pending, fenced by revision, with their provenance in the same write; a claim and either of them never both have it.
 */
import assert from "node:assert/strict";
import type { Intervention } from "../../store/store.ts";
import { DAY, DELIVERED, dead, hold, idsOf, KEYED, MINUTE, retry, SECOND, seen, sorted } from "./fixtures.ts";
import { done, intervene, settledAs, wrongState } from "./intervene.ts";
import type { Scene } from "./scene.ts";

const cancel = (scene: Scene, ms: number, id: string, more: Partial<Intervention> = {}) =>
  intervene(scene, ms, "cancel", id, more);
const reschedule = (scene: Scene, ms: number, id: string, delayMs: number, more: Partial<Intervention> = {}) =>
  intervene(scene, ms, "reschedule", id, { delayMs, ...more });

const one = (ids: readonly string[]): string => ids[0] as string;

const cancelCases: Record<string, (scene: Scene) => Promise<void>> = {
  "cancel of a due message, a delayed one, one that failed before, a held one and one with an order: discarded, for good": async (
    scene,
  ) => {
    const tried = [(await settledAs(scene, hold())).id, (await failedOnce(scene)).id];
    const ids = [...tried, ...(await scene.accept(0, {}, { delayMs: MINUTE }, order("a")))];
    for (const id of ids) {
      const before = await seen(scene.store, id);
      const view = await done(cancel(scene, 10, id));
      assert.deepEqual([view.status, view.resolution, view.heldReason, view.nextAttemptAt], ["dead", "discarded", null, null]);
      assert.deepEqual([view.diedAt, view.attempts, view.revision], [scene.at(10).now, before.attempts, before.revision + 1]);
      assert.deepEqual(await seen(scene.store, id), view);
      const { provenance } = await scene.store.history(id);
      assert.deepEqual(provenance, [{ at: scene.at(10).now, actor: "person", action: "cancel", reason: "looked at it" }]);
      await wrongState(scene, id, ["replay", "resolve", "discard", "cancel", "reschedule"]);
    }
    await scene.nothing(DAY);
  },

  "cancel is for what is pending: an open dead letter stays one": async (scene) => {
    const { id } = await settledAs(scene, dead());
    await wrongState(scene, id, ["cancel"]);
    assert.equal((await seen(scene.store, id)).resolution, "open");
    assert.deepEqual((await scene.store.history(id)).provenance, []);
  },

  "the key of a cancelled message stays taken: the effect shall not happen": async (scene) => {
    const fields = { key: "k1", payload: '{"a":1}' };
    const id = one(await scene.accept(0, fields));
    await done(cancel(scene, 1, id));
    assert.deepEqual(await scene.store.enqueue([scene.message(fields)], scene.at(2)), [{ kind: "duplicate", id }]);
    await scene.nothing(3);
  },

  "a cancelled head lets the next of its ordering key go; one behind it takes nothing away": async (scene) => {
    const [first, second, third] = await scene.accept(0, order("a"), order("a"), order("a"));
    await done(cancel(scene, 1, second as string));
    await done(cancel(scene, 2, first as string));
    assert.equal((await scene.takeOne(3)).id, third);
  },

  "a replayed message may be cancelled, a cancelled one is pruned as settled": async (scene) => {
    const { id } = await settledAs(scene, dead());
    await done(intervene(scene, 5, "replay", id));
    await done(cancel(scene, 6, id));
    await scene.nothing(7);
    for (let calls = 0; calls < 10; calls++) await scene.store.prune({ keptMs: DAY, limit: 100, now: scene.at(4 * DAY).now });
    assert.equal(await scene.store.get(id), null);
  },
};

/** One that waits for its second attempt, among those that failed before. */
async function failedOnce(scene: Scene) {
  const id = one(await scene.accept(0));
  await scene.settled(2, await scene.take(1, 1), retry(MINUTE, true, 0, true));
  return seen(scene.store, id);
}

const order = (orderingKey: string) => ({ topic: KEYED, orderingKey });

const rescheduleCases: Record<string, (scene: Scene) => Promise<void>> = {
  "reschedule to later and to sooner: only the moment it is due changes": async (scene) => {
    const before = await seen(scene.store, one(await scene.accept(0)));
    const later = await done(reschedule(scene, 10, before.id, MINUTE));
    const nextAttemptAt = scene.at(10 + MINUTE).now;
    assert.deepEqual(later, { ...before, nextAttemptAt, revision: before.revision + 1 });
    assert.deepEqual(await seen(scene.store, before.id), later);
    await scene.nothing(MINUTE);
    const sooner = await done(reschedule(scene, MINUTE, before.id, 0, { revision: later.revision }));
    assert.deepEqual(sooner.nextAttemptAt, scene.at(MINUTE).now);
    const claimed = await scene.takeOne(MINUTE + 1);
    assert.deepEqual([claimed.id, claimed.attempt, claimed.base, claimed.payload], [before.id, 1, 0, before.payload]);
    await scene.nothing(2 * MINUTE);
    await scene.settled(2 * MINUTE, [claimed], DELIVERED);
    const { status, revision, generation } = await seen(scene.store, before.id);
    assert.deepEqual([status, revision, generation], ["delivered", before.revision + 2, before.generation]);
  },

  "reschedule of a retry that waits: its attempts and its lane stay, a later death is a death like any other": async (scene) => {
    const before = await failedOnce(scene);
    const view = await done(reschedule(scene, 10, before.id, 5 * SECOND));
    assert.deepEqual([view.attempts, view.generation, view.lastCode], [1, before.generation, before.lastCode]);
    await scene.nothing(5 * SECOND);
    const claimed = await scene.takeOne(6 * SECOND);
    assert.deepEqual([claimed.attempt, claimed.base, claimed.retried], [2, 0, true]);
    await scene.settled(7 * SECOND, [claimed], dead());
    const died = await seen(scene.store, before.id);
    assert.deepEqual([died.status, died.resolution, died.attempts], ["dead", "open", 2]);
    const replayed = await done(intervene(scene, 8 * SECOND, "replay", before.id, { revision: died.revision }));
    assert.equal(replayed.generation, before.generation + 1);
  },

  "reschedule is for what waits: a held message, one in flight and a dead one stay as they are": async (scene) => {
    await wrongState(scene, (await settledAs(scene, hold())).id, ["reschedule"]);
    await wrongState(scene, (await settledAs(scene, dead())).id, ["reschedule"]);
    const id = one(await scene.accept(20));
    const claimed = await scene.take(1, 21);
    await wrongState(scene, id, ["reschedule", "cancel"]);
    await scene.settled(30, claimed, DELIVERED);
  },

  "reschedule keeps the place in an ordering key: a later head holds those behind it, and nobody passes it": async (scene) => {
    const [first, second] = (await scene.accept(0, order("a"), { ...order("a"), delayMs: MINUTE })) as [string, string];
    await done(reschedule(scene, 1, second, 0));
    await done(reschedule(scene, 2, first, 5 * SECOND));
    await scene.nothing(5 * SECOND);
    const head = await scene.takeOne(6 * SECOND);
    assert.equal(head.id, first);
    await scene.settled(6 * SECOND, [head], DELIVERED);
    assert.equal((await scene.takeOne(7 * SECOND)).id, second);
  },

  "reschedule sooner is a hint for the lane, and its lane says when it is due": async (scene) => {
    const id = one(await scene.accept(0, { delayMs: DAY }));
    let hints = 0;
    const stop = scene.store.wake(() => hints++);
    await done(reschedule(scene, 1, id, 0));
    stop();
    assert.ok(hints > 0);
    const lanes = await scene.store.lanes(scene.at(2));
    assert.deepEqual(
      lanes.map(({ dueInMs }) => dueInMs),
      [-1],
    );
  },

  "what was cancelled or rescheduled must still be what was seen": async (scene) => {
    const { id, revision } = await seen(scene.store, one(await scene.accept(0)));
    await done(reschedule(scene, 1, id, MINUTE, { revision }));
    const stale = { kind: "revision_conflict", revision: revision + 1 };
    assert.deepEqual(await reschedule(scene, 2, id, 0, { revision }), stale);
    assert.deepEqual(await cancel(scene, 3, id, { revision }), stale);
    await scene.nothing(SECOND);
    await done(cancel(scene, 4, id, { revision: revision + 1 }));
  },
};

const raceCases: Record<string, (scene: Scene) => Promise<void>> = {
  "cancel against claim: each message goes to one of them": async (scene) => {
    const [store, other] = await scene.instances(2);
    assert.ok(store && other);
    const ids = await scene.accept(0, ...Array.from({ length: 40 }, () => ({})));
    const claims = Array.from({ length: 8 }, () => scene.claim(1, { limit: 3, store: other }));
    const cancels = ids.map(async (id) => (await intervene(scene, 1, "cancel", id, {}, store)).kind === "done" && id);
    const cancelled = (await Promise.all(cancels)).filter((id) => id !== false);
    const claimed = (await Promise.all(claims)).flat();
    const rest = await scene.take(ids.length - cancelled.length - claimed.length, 2);
    assert.deepEqual(sorted([...cancelled, ...idsOf(claimed), ...idsOf(rest)]), sorted(ids));
    await scene.settled(3, [...claimed, ...rest], DELIVERED);
  },

  "reschedule against claim: what was moved comes at its new time, once, and what was claimed is settled": async (scene) => {
    const [store, other] = await scene.instances(2);
    assert.ok(store && other);
    const fields = (i: number) => (i % 2 === 0 ? {} : order(`k${i}`));
    const ids = await scene.accept(0, ...Array.from({ length: 40 }, (_, i) => fields(i)));
    const claims = Array.from({ length: 8 }, () => scene.claim(1, { limit: 3, store: other }));
    const moves = ids.map(async (id) => {
      const moved = await intervene(scene, 1, "reschedule", id, { delayMs: MINUTE }, store);
      return moved.kind === "done" && id;
    });
    const moved = (await Promise.all(moves)).filter((id) => id !== false);
    const claimed = (await Promise.all(claims)).flat();
    const rest = await scene.take(ids.length - moved.length - claimed.length, 2);
    assert.deepEqual(sorted([...moved, ...idsOf(claimed), ...idsOf(rest)]), sorted(ids));
    await scene.nothing(MINUTE);
    await scene.settled(MINUTE, [...claimed, ...rest], DELIVERED);
    assert.deepEqual(sorted(idsOf(await scene.take(moved.length, MINUTE + 1))), sorted(moved));
  },

  "two reschedules of one message under one revision: exactly one is done": async (scene) => {
    const instances = await scene.instances(4);
    for (const fields of [{}, order("a")]) {
      const { id, revision } = await seen(scene.store, one(await scene.accept(0, fields)));
      const results = await Promise.all(
        instances.map((store, i) => intervene(scene, 1, "reschedule", id, { revision, delayMs: i * SECOND }, store)),
      );
      assert.equal(results.filter(({ kind }) => kind === "done").length, 1);
      assert.equal((await seen(scene.store, id)).revision, revision + 1);
      assert.equal((await scene.store.history(id)).provenance.length, 1);
      await scene.takeOne(MINUTE);
      await scene.nothing(2 * MINUTE);
    }
  },

  "the head of a key goes while the next one is moved: the next one is seen all the same": async (scene) => {
    const [store, other] = await scene.instances(2);
    assert.ok(store && other);
    for (let round = 0; round < 10; round++) {
      const at = round * SECOND;
      const [first, second] = (await scene.accept(at, order(`k${round}`), order(`k${round}`))) as [string, string];
      // The claim looks at both: the second one is known to be behind the first.
      await scene.settled(at + 2, await scene.take(1, at + 1), retry());
      await Promise.all([
        intervene(scene, at + 3, "cancel", first, {}, store),
        intervene(scene, at + 3, "reschedule", second, { delayMs: 0 }, other),
      ]);
      const next = await scene.takeOne(at + 4);
      assert.equal(next.id, second);
      await scene.settled(at + 5, [next], DELIVERED);
    }
  },
};

export const pendingCases: Record<string, (scene: Scene) => Promise<void>> = { ...cancelCases, ...rescheduleCases, ...raceCases };
