/**
 * What deliver() and the fallback ladder ask of a store: a direct try that was refused for good is a dead letter from the start, and
 * named messages can be claimed by id, due or not.
 */
import assert from "node:assert/strict";
import type { NewMessage } from "../../message/message.ts";
import { countOf, DELIVERED, dead, hold, idsOf, KEYED, MINUTE, retry, SECOND, seen, sorted } from "./fixtures.ts";
import { type Scene, settles } from "./scene.ts";

const REFUSED: Partial<NewMessage> = { directTry: { code: "http_422", error: "no such account", rejected: true } };
const FAILED: Partial<NewMessage> = { directTry: { code: "http_500", error: "broken" } };

const byId = (scene: Scene, ms: number, ids: readonly string[], owner = "worker") =>
  scene.store.claim({ owner, leaseMs: 30_000, lanes: [], ids, ...scene.at(ms) });

export const directTryCases: Record<string, (scene: Scene) => Promise<void>> = {
  "a direct try that was refused for good is an open dead letter from the start": async (scene) => {
    const [id = ""] = await scene.accept(0, REFUSED);
    const view = await seen(scene.store, id);
    assert.deepEqual([view.status, view.resolution, view.attempts, view.nextAttemptAt], ["dead", "open", 0, null]);
    assert.deepEqual([view.lastCode, view.lastError, view.diedAt], ["http_422", "no such account", scene.at(0).now]);
    const { attempts } = await scene.store.history(id);
    assert.deepEqual(
      attempts.map(({ attempt, outcome, counted, code, nextAttemptAt }) => ({ attempt, outcome, counted, code, nextAttemptAt })),
      [{ attempt: 0, outcome: "reject", counted: false, code: "http_422", nextAttemptAt: null }],
    );
    await scene.nothing(MINUTE);
    assert.deepEqual(await byId(scene, MINUTE, [id]), []);
    assert.equal(await countOf(scene.store, "dead"), 1);
  },

  "refused, failed and plain messages in one call each become what they are": async (scene) => {
    const [, failed = "", plain = ""] = await scene.accept(0, { ...REFUSED, key: "a" }, { ...FAILED, delayMs: SECOND }, {});
    assert.deepEqual(idsOf(await scene.take(1, 1)), [plain]);
    assert.deepEqual(idsOf(await scene.take(1, SECOND)), [failed]);
    assert.equal(await countOf(scene.store, "dead"), 1);
  },

  "CON-8: a refused message put again changes nothing, whatever became of it": async (scene) => {
    const message = scene.message({ ...REFUSED, key: "k" });
    const accepted = [{ kind: "accepted", id: message.id }];
    assert.deepEqual(await scene.store.enqueue([message], scene.at(0)), accepted);
    assert.deepEqual(await scene.store.enqueue([message], scene.at(1)), accepted);
    const replayed = await scene.store.intervene({ id: message.id, action: "replay", actor: "me", reason: null, ...scene.at(2) });
    assert.equal(replayed.kind, "done");
    assert.deepEqual(await scene.store.enqueue([message], scene.at(3)), accepted);
    const [claimed] = await scene.take(1, 4);
    assert.deepEqual([claimed?.id, claimed?.attempt, claimed?.base, claimed?.handedDown], [message.id, 1, 0, true]);
    await scene.settled(5, claimed ? [claimed] : [], DELIVERED);
    assert.deepEqual(await scene.store.enqueue([message], scene.at(6)), accepted);
    assert.deepEqual([await countOf(scene.store, "delivered"), await countOf(scene.store)], [1, 1]);
  },

  "CON-8: a handed-down message put again never takes attempts, a hold or a death back": async (scene) => {
    const messages = [FAILED, FAILED, FAILED].map((fields, n) => scene.message({ ...fields, key: `k${n}` }));
    await scene.store.enqueue(messages, scene.at(0));
    const [a, b, c] = await scene.take(3, 1);
    assert.ok(a && b && c);
    await scene.settled(2, [a], retry(MINUTE));
    await scene.settled(2, [b], dead());
    await scene.settled(2, [c], hold());
    const before = await Promise.all(messages.map(({ id }) => seen(scene.store, id)));
    const again = await scene.store.enqueue(messages, { atomic: "each", ...scene.at(3) });
    assert.deepEqual(
      again,
      messages.map(({ id }) => ({ kind: "accepted", id })),
    );
    assert.deepEqual(await Promise.all(messages.map(({ id }) => seen(scene.store, id))), before);
  },
};

export const namedClaimCases: Record<string, (scene: Scene) => Promise<void>> = {
  "a claim by id takes exactly those, due or not": async (scene) => {
    const ids = await scene.accept(0, { delayMs: MINUTE, key: "k", tenantId: "t" }, { delayMs: MINUTE }, {});
    const claimed = await byId(scene, 1, ids.slice(0, 2));
    assert.deepEqual(sorted(idsOf(claimed)), sorted(ids.slice(0, 2)));
    const first = claimed.find(({ id }) => id === ids[0]);
    assert.deepEqual(
      [first?.attempt, first?.key, first?.tenantId, first?.payload.length],
      [1, "k", "t", `{"id":"${ids[0]}"}`.length],
    );
    assert.deepEqual(idsOf(await scene.take(1, 2)), [ids[2]]);
    await scene.settled(3, claimed, DELIVERED);
    assert.equal(await countOf(scene.store, "delivered"), 2);
  },

  "DF-6, DF-26: named messages can be claimed only if they are due, by the store's clock": async (scene) => {
    const ids = await scene.accept(0, { delayMs: MINUTE }, {}, { delayMs: SECOND });
    const due = (ms: number) =>
      scene.store.claim({ owner: "worker", leaseMs: 30_000, lanes: [], ids, due: true, ...scene.at(ms) });
    assert.deepEqual(idsOf(await due(1)), [ids[1]]);
    assert.deepEqual(idsOf(await due(SECOND)), [ids[2]]);
    assert.deepEqual(await due(MINUTE - 1), []);
    assert.deepEqual(idsOf(await due(MINUTE)), [ids[0]]);
  },

  "I3: a claim by id leaves out what is in flight, settled, dead, held, ordered or unknown": async (scene) => {
    const ids = await scene.accept(0, {}, {}, {}, {}, { topic: KEYED, orderingKey: "o" }, REFUSED);
    const taken = await byId(scene, 1, ids.slice(0, 4));
    const of = (n: number) => taken.filter(({ id }) => id === ids[n]);
    await scene.settled(2, of(1), DELIVERED);
    await scene.settled(2, of(2), dead());
    await scene.settled(2, of(3), hold());
    assert.deepEqual(await byId(scene, 3, [...ids, scene.id()]), []);
    assert.deepEqual(await byId(scene, 3, []), []);
  },

  "I3: a claim by id and claims by lane never hold one message twice": async (scene) => {
    const ids = await scene.accept(0, ...Array.from({ length: 40 }, () => ({})));
    const stores = await scene.instances(4);
    const all = await Promise.all(
      stores.flatMap((store) => [
        store.claim({ owner: "named", leaseMs: 30_000, lanes: [], ids, ...scene.at(1) }),
        scene.claim(1, { store, limit: 20 }),
      ]),
    );
    const held = all.flat();
    assert.equal(new Set(idsOf(held)).size, held.length, "a message was claimed twice");
  },

  "what was claimed by id is fenced, given back and tried again like any other": async (scene) => {
    const [id = ""] = await scene.accept(0, { delayMs: MINUTE });
    const [one] = await byId(scene, 1, [id]);
    assert.ok(one);
    await scene.settled(2, [one], retry(SECOND));
    const [two] = await byId(scene, 3, [id]);
    assert.deepEqual([two?.attempt, two?.base], [2, 0]);
    assert.deepEqual(await scene.store.settle(settles([one], DELIVERED), scene.at(4)), ["lost"]);
    await scene.settled(5, two ? [two] : [], { kind: "release" });
    assert.equal((await seen(scene.store, id)).attempts, 1);
  },
};
