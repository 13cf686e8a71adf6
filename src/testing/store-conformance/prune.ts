/**
 * Retention (I2): only what is settled goes, and only past its time. A store may keep it up to a day longer (whole days
 * leave at once), so a case asserts "not before" and "gone after two days more".
 */
import assert from "node:assert/strict";
import { systemClock } from "../../platform/clock.ts";
import { createIds } from "../../platform/ids.ts";
import type { Store } from "../../store/store.ts";
import { countOf, DAY, DELIVERED, dead, hold, idsOf, KEYED, MINUTE, newMessage, retry, seen, sorted } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

const KEPT = 3 * DAY;
const GONE = KEPT + 2 * DAY;

/** Prunes until nothing more goes, as the upkeep does; returns how many went. */
async function prune(scene: Scene, ms: number, keptMs = KEPT, limit = 10_000): Promise<number> {
  let gone = 0;
  for (let calls = 0; calls < 100; calls++) {
    const went = await scene.store.prune({ keptMs, limit, ...scene.at(ms) });
    gone += went;
    if (went === 0) return gone;
  }
  throw new assert.AssertionError({ message: "prune never came to an end" });
}

export const pruneCases: Record<string, (scene: Scene) => Promise<void>> = {
  "DO-6: a delivered message stays for its time and goes after it, with its history": async (scene) => {
    const [id] = await scene.accept(0);
    await scene.settled(MINUTE, await scene.take(1, 1), DELIVERED);
    assert.equal(await prune(scene, KEPT), 0);
    assert.equal((await seen(scene.store, id as string)).status, "delivered");
    assert.equal(await prune(scene, GONE), 1);
    assert.equal(await scene.store.get(id as string), null);
    assert.deepEqual((await scene.store.history(id as string)).attempts, []);
    assert.equal(await countOf(scene.store), 0);
    assert.deepEqual((await scene.store.list({ limit: 10 })).data, []);
  },

  "the time counts from the settling, not from the making": async (scene) => {
    const [id] = await scene.accept(0, { delayMs: 2 * DAY });
    await scene.settled(2 * DAY + MINUTE, await scene.take(1, 2 * DAY), DELIVERED);
    assert.equal(await prune(scene, 2 * DAY + KEPT), 0);
    assert.ok(await scene.store.get(id as string));
    assert.equal(await prune(scene, 2 * DAY + GONE), 1);
    assert.equal(await scene.store.get(id as string), null);
  },

  "resolved and discarded dead letters go, counted from when they were": async (scene) => {
    const ids = await scene.accept(0, {}, {}, {});
    await scene.settled(2, await scene.take(3, 1), dead());
    const by = { actor: "person", reason: null, ...scene.at(2 * DAY + MINUTE) };
    await scene.store.intervene({ id: ids[0]!, action: "resolve", ...by });
    await scene.store.intervene({ id: ids[1]!, action: "discard", ...by });
    assert.equal(await prune(scene, 2 * DAY + KEPT), 0);
    assert.equal(await prune(scene, 2 * DAY + GONE), 2);
    assert.deepEqual(idsOf((await scene.store.list({ limit: 10 })).data), [ids[2]]);
  },

  "dead letters that ended may stay longer than what was delivered, and hold up nothing that goes": async (scene) => {
    const ids = await scene.accept(0, {}, {}, {}, {});
    const [first, second, ...delivered] = ids as [string, string, ...string[]];
    await scene.settled(2, await scene.take(2, 1), dead());
    const by = { actor: "person", reason: null, ...scene.at(MINUTE) };
    await scene.store.intervene({ id: first, action: "resolve", ...by });
    await scene.store.intervene({ id: second, action: "discard", ...by });
    await scene.settled(2 * MINUTE, await scene.take(2, 2 * MINUTE), DELIVERED);
    const went = async (ms: number): Promise<number> => {
      let gone = 0;
      for (let calls = 0; calls < 20; calls++)
        gone += await scene.store.prune({ keptMs: KEPT, deadKeptMs: 10 * KEPT, limit: 1, ...scene.at(ms) });
      return gone;
    };
    assert.equal(await went(GONE), 2);
    for (const id of delivered) assert.equal(await scene.store.get(id), null);
    assert.equal((await seen(scene.store, first)).resolution, "resolved");
    assert.equal((await seen(scene.store, second)).resolution, "discarded");
    assert.equal(await went(9 * KEPT), 0);
    assert.equal(await went(10 * KEPT + 2 * DAY), 2);
  },

  "a dry run says how many would go, and what went is told by class": async (scene) => {
    const ids = await scene.accept(0, {}, {}, {});
    await scene.settled(2, await scene.take(2, 1), dead());
    const by = { actor: "person", reason: null, ...scene.at(MINUTE) };
    await scene.store.intervene({ id: ids[0]!, action: "resolve", ...by });
    await scene.settled(2 * MINUTE, await scene.take(1, 2 * MINUTE), DELIVERED);
    const told: Record<string, number> = {};
    const went = (name: string, count: number): void => {
      told[name] = (told[name] ?? 0) + count;
    };
    const request = { keptMs: KEPT, limit: 1, went, ...scene.at(GONE) };
    assert.equal(await scene.store.prune({ ...request, dryRun: true }), 2);
    assert.equal(await scene.store.prune({ ...request, deadKeptMs: 10 * KEPT, dryRun: true }), 1);
    assert.equal(await countOf(scene.store), 3);
    assert.deepEqual(told, {});
    for (let calls = 0; calls < 5; calls++) await scene.store.prune(request);
    assert.deepEqual(told, { delivered: 1, dead: 1 });
    assert.equal(await scene.store.prune({ ...request, dryRun: true }), 0);
  },

  "I9: what is done under a leadership that has ended is refused": async (scene) => {
    const { term } = await scene.store.lead("upkeep", "a", 60_000);
    const under = { name: "upkeep", owner: "a", term };
    const lost = { name: "MakegoodError", code: "leadership_lost" };
    await scene.store.prune({ keptMs: KEPT, limit: 10, under });
    for (const other of [{ term: String(BigInt(term) + 1n) }, { owner: "b" }, { name: "nothing" }])
      await assert.rejects(scene.store.prune({ keptMs: KEPT, limit: 10, under: { ...under, ...other } }), lost);
    await scene.store.lead("upkeep", "a", 0);
    await assert.rejects(scene.store.prune({ keptMs: KEPT, limit: 10, under }), lost);
  },

  "I2: pending, delayed, held, in flight and open dead letters stay for ever, whole": async (scene) => {
    const ids = await scene.accept(0, {}, {}, { delayMs: 20 * DAY }, {}, {}, {});
    const [inFlight, toHold, toDie, toRetry] = await scene.take(4, 1);
    assert.ok(inFlight && toHold && toDie && toRetry);
    await scene.settled(2, [toHold], hold());
    await scene.settled(2, [toDie], dead());
    await scene.settled(2, [toRetry], retry(20 * DAY));
    const before = await Promise.all(ids.map((id) => seen(scene.store, id)));
    assert.equal(await prune(scene, 40 * DAY, DAY), 0);
    assert.deepEqual(await Promise.all(ids.map((id) => seen(scene.store, id))), before);
    assert.equal((await scene.store.history(toDie.id)).attempts.length, 1);
    // Old as they are, they are claimed with their payloads and settled like any other.
    const old = await scene.take(3, 40 * DAY + 1);
    for (const message of old) assert.equal(message.payload, before.find(({ id }) => id === message.id)?.payload);
    await scene.settled(40 * DAY + 2, [...old, inFlight], DELIVERED);
    await scene.store.intervene({ id: toDie.id, action: "replay", actor: "person", reason: null, ...scene.at(40 * DAY + 3) });
    const replayed = await scene.takeOne(40 * DAY + 4);
    assert.deepEqual([replayed.id, replayed.payload], [toDie.id, before.find(({ id }) => id === toDie.id)?.payload]);
  },

  "what was settled under a lease that is still held does not come back with the lease": async (scene) => {
    await scene.accept(0, {}, {}, {});
    const [delivered, died, held] = await scene.take(3, 1);
    assert.ok(delivered && died && held);
    await scene.settled(2, [delivered], DELIVERED);
    await scene.settled(2, [died], dead());
    await scene.store.intervene({ id: died.id, action: "discard", actor: "person", reason: null, ...scene.at(3) });
    // A store may keep what a held lease names until that lease ends.
    await prune(scene, GONE);
    assert.equal(await countOf(scene.store, "processing"), 1);
    for (const gone of [delivered, died]) assert.deepEqual(await scene.settle(GONE + 1, [gone], retry()), ["lost"]);
    const taken = await scene.store.reclaim({ owner: "other", leaseMs: 30_000, limit: 10, ...scene.at(GONE + 2) });
    assert.deepEqual(idsOf(taken), [held.id]);
    await scene.settled(GONE + 3, taken, DELIVERED);
    await scene.nothing(GONE + 4);
    await prune(scene, GONE + 4);
    for (const gone of [delivered, died]) assert.equal(await scene.store.get(gone.id), null);
  },

  "I1: what lived through a prune is still one row when it is enqueued again, as an old journal would": async (scene) => {
    const messages = [scene.message(), scene.message({ key: "k" }), scene.message()];
    const accepted = messages.map(({ id }) => ({ kind: "accepted", id }));
    await scene.store.enqueue(messages, scene.at(0));
    const claimed = await scene.take(1, 1);
    assert.equal(await prune(scene, GONE), 0);
    assert.deepEqual(await scene.store.enqueue(messages, scene.at(GONE + 1)), accepted);
    for (const message of messages) assert.equal((await scene.store.enqueue([message], scene.at(GONE + 2)))[0]?.kind, "accepted");
    assert.equal(await countOf(scene.store), 3);
    await scene.settled(GONE + 3, [...claimed, ...(await scene.take(2, GONE + 2))], DELIVERED);
    await scene.nothing(GONE + 4);
  },

  "what lived through a prune goes with a later one, once it is settled": async (scene) => {
    const [kept] = await scene.accept(0, { delayMs: 10 * DAY, key: "kept" }, {});
    await scene.settled(2, await scene.take(1, 1), DELIVERED);
    assert.equal(await prune(scene, GONE), 1);
    await scene.settled(10 * DAY + 1, await scene.take(1, 10 * DAY), DELIVERED);
    assert.equal(await prune(scene, 10 * DAY + KEPT), 0);
    assert.equal(await prune(scene, 10 * DAY + GONE), 1);
    assert.equal(await scene.store.get(kept as string), null);
  },

  "DO-6: the key protects until its message goes, then it may be used again": async (scene) => {
    const payload = '{"amount":1}';
    const [id, open] = await scene.accept(0, { key: "k", payload }, { key: "open", payload });
    const claimed = await scene.take(2, 1);
    await scene.settled(2, claimed.slice(0, 1), DELIVERED);
    await scene.settled(2, claimed.slice(1), dead());
    await prune(scene, KEPT);
    // Ids carry the time of their making, so what is enqueued days later is made days later too.
    const idsAt = (ms: number) => createIds({ ...systemClock, wallMs: () => scene.at(ms).now.getTime() });
    const again = scene.message({ id: idsAt(KEPT)(), key: "k", payload });
    assert.deepEqual(await scene.store.enqueue([again], scene.at(KEPT)), [{ kind: "duplicate", id }]);
    await prune(scene, GONE);
    const next = idsAt(GONE);
    const later = [scene.message({ id: next(), key: "k", payload }), scene.message({ id: next(), key: "open", payload })];
    assert.deepEqual(await scene.store.enqueue(later, scene.at(GONE)), [
      { kind: "accepted", id: later[0]!.id },
      { kind: "duplicate", id: open },
    ]);
  },

  "N21: what is forgotten of lanes that had nothing for long is missed by no instance that still knows them": async (scene) => {
    const kinds = [
      { tenantId: "quiet" },
      { tenantId: "quiet", priority: 5 },
      { tenantId: "quiet", topic: KEYED, orderingKey: "o" },
    ];
    const stores = await scene.instances(2);
    // Each fails once, so that both instances know the lanes of those that failed before, too.
    const deliverAll = async (store: Store, ms: number) => {
      const ids: string[] = [];
      for (let round = 1; round < 20; round++) {
        const claimed = await scene.claim(ms + round, { store });
        const [again, done] = [claimed.filter((one) => one.attempt === 1), claimed.filter((one) => one.attempt > 1)];
        await scene.settle(ms + round, again, retry(0, true, 0, true), store);
        await scene.settle(ms + round, done, DELIVERED, store);
        ids.push(...idsOf(done));
      }
      return ids;
    };
    const late = createIds({ ...systemClock, wallMs: () => scene.at(10 * DAY).now.getTime() });
    for (const [ms, id, order] of [
      [0, scene.id, stores],
      [10 * DAY, late, [...stores].reverse()],
    ] as const) {
      for (const store of order) {
        const messages = kinds.map((kind) => newMessage(id(), kind));
        for (const message of messages) assert.equal((await store.enqueue([message], scene.at(ms)))[0]?.kind, "accepted");
        assert.deepEqual(sorted(await deliverAll(store, ms)), sorted(idsOf(messages)));
      }
      if (ms === 0) for (const days of [5, 6, 8, 10]) await prune(scene, days * DAY, DAY);
      if (ms === 0) assert.equal(await countOf(scene.store), 0);
    }
  },

  "I10: call after call it comes to an end, and nothing else is touched": async (scene) => {
    const ids = await scene.accept(0, ...Array.from({ length: 60 }, (_, i) => ({ key: `key-${i}` })));
    const claimed = await scene.take(50, 1);
    await scene.settled(2, claimed, DELIVERED);
    assert.equal(await prune(scene, GONE, KEPT, 20), 50);
    const left = ids.filter((id) => !idsOf(claimed).includes(id));
    assert.deepEqual(sorted(idsOf((await scene.store.list({ limit: 100 })).data)), sorted(left));
    await scene.take(10, GONE + 1);
  },
};
