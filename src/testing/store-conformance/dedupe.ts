/**
 * Deduplication: a key names one effect within its topic and tenant, for as long as its message lives, for every caller
 * and however many ask at once.
 */
import assert from "node:assert/strict";
import type { Accepted, NewMessage } from "../../message/message.ts";
import { countOf, DELIVERED, dead, definition, hold, OTHER, PLAIN, seen, shuffled, sorted } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

const A = '{"amount":1}';
const B = '{"amount":2}';

/** The kinds of a result, in order. */
const kinds = (results: readonly Accepted[]): string[] => results.map(({ kind }) => kind);

async function enqueue(scene: Scene, ...fields: Partial<NewMessage>[]): Promise<Accepted[]> {
  return scene.store.enqueue(fields.map(scene.message), scene.at(0));
}

export const dedupeCases: Record<string, (scene: Scene) => Promise<void>> = {
  "DO-5: the same key with the same payload is a duplicate and names the first one's id": async (scene) => {
    const [id] = await scene.accept(0, { key: "k", payload: A });
    assert.deepEqual(await enqueue(scene, { key: "k", payload: A }), [{ kind: "duplicate", id }]);
    assert.equal(await countOf(scene.store), 1);
  },

  "DO-5: the same key with another payload is a conflict and changes nothing": async (scene) => {
    const [id] = await scene.accept(0, { key: "k", payload: A });
    assert.deepEqual(await enqueue(scene, { key: "k", payload: B }), [{ kind: "conflict", id }]);
    assert.equal(await countOf(scene.store), 1);
    assert.equal((await seen(scene.store, id as string)).payload, A);
  },

  "a key is unique within its topic and tenant; no tenant is a scope of its own": async (scene) => {
    await scene.accept(
      0,
      { key: "k" },
      { key: "k", tenantId: "t1" },
      { key: "k", tenantId: "t2" },
      { key: "k", topic: OTHER },
      { key: "k", topic: OTHER, tenantId: "t1" },
    );
    // Scopes that would be equal if topic, tenant and key were merely joined together.
    await scene.accept(0, { key: "b/c", tenantId: "a" }, { key: "c", tenantId: "a/b" }, { key: "a/b/c" });
    assert.deepEqual(kinds(await enqueue(scene, { key: "k", tenantId: "t2", payload: A })), ["conflict"]);
    assert.equal(await countOf(scene.store), 8);
  },

  "no key, no deduplication": async (scene) => {
    await scene.accept(0, { payload: A }, { payload: A });
    assert.equal(await countOf(scene.store), 2);
  },

  "a key twice in one batch with the same payload: the second is a duplicate of the first": async (scene) => {
    const messages = [{ key: "k", payload: A }, { key: "other" }, { key: "k", payload: A }].map(scene.message);
    const results = await scene.store.enqueue(messages, scene.at(0));
    assert.deepEqual(results[2], { kind: "duplicate", id: messages[0]!.id });
    assert.deepEqual(kinds(results), ["accepted", "accepted", "duplicate"]);
    assert.equal(await countOf(scene.store), 2);
  },

  "a key twice in one batch with another payload: a conflict, and nothing is written": async (scene) => {
    const results = await enqueue(scene, { key: "k", payload: A }, { key: "k", payload: B });
    assert.equal(results[1]?.kind, "conflict");
    assert.equal(await countOf(scene.store), 0);
    assert.deepEqual(kinds(await enqueue(scene, { key: "k", payload: B })), ["accepted"], "the key is still free");
  },

  "atomic all: one conflict refuses every message of the call": async (scene) => {
    const [id] = await scene.accept(0, { key: "taken", payload: A });
    const fields = [{}, { key: "free" }, { key: "taken", payload: B }, { key: "taken", payload: A }];
    const results = await enqueue(scene, ...fields);
    assert.deepEqual(results[2], { kind: "conflict", id });
    assert.equal(await countOf(scene.store), 1);
    assert.deepEqual(kinds(await enqueue(scene, { key: "free", payload: B })), ["accepted"], "the other key is still free");
    await scene.take(2, 1);
    await scene.nothing(2);
  },

  "atomic each: every message is accepted or refused by itself": async (scene) => {
    const [id] = await scene.accept(0, { key: "taken", payload: A });
    const messages = [
      { key: "taken", payload: B },
      { key: "free", payload: A },
      { key: "free", payload: B },
      { key: "free", payload: A },
      {},
    ].map(scene.message);
    const free = messages[1]!.id;
    assert.deepEqual(await scene.store.enqueue(messages, { ...scene.at(0), atomic: "each" }), [
      { kind: "conflict", id },
      { kind: "accepted", id: free },
      { kind: "conflict", id: free },
      { kind: "duplicate", id: free },
      { kind: "accepted", id: messages[4]!.id },
    ]);
    assert.equal(await countOf(scene.store), 3);
  },

  "DO-6: the key protects whatever became of its message": async (scene) => {
    const ids = await scene.accept(
      0,
      { key: "1", payload: A },
      { key: "2", payload: A },
      { key: "3", payload: A },
      { key: "4", payload: A },
    );
    const claimed = await scene.take(4, 1);
    const [one, two, three] = ids.map((id) => claimed.filter((each) => each.id === id));
    await scene.settled(2, one!, DELIVERED);
    await scene.settled(2, two!, dead());
    await scene.settled(2, three!, hold());
    const again = await enqueue(scene, ...["1", "2", "3", "4"].map((key) => ({ key, payload: A })));
    assert.deepEqual(
      again,
      ids.map((id) => ({ kind: "duplicate", id })),
    );
  },

  "DO-6: the key protects when its topic was deleted and declared again": async (scene) => {
    const [id] = await scene.accept(0, { key: "k", payload: A });
    await scene.settled(2, await scene.take(1, 1), DELIVERED);
    assert.equal(await scene.store.topics.delete(PLAIN, "code"), "deleted");
    await scene.store.topics.put(definition(PLAIN), "code");
    assert.deepEqual(await enqueue(scene, { key: "k", payload: A }), [{ kind: "duplicate", id }]);
  },

  "DO-5: fifty at once with one key: one accepted, forty-nine duplicates of it": async (scene) => {
    const instances = await scene.instances(50);
    const results = await Promise.all(
      instances.map((store) => store.enqueue([scene.message({ key: "race", payload: A })], scene.at(0))),
    );
    const flat = results.flat();
    assert.equal(flat.filter(({ kind }) => kind === "accepted").length, 1);
    assert.equal(flat.filter(({ kind }) => kind === "duplicate").length, 49);
    assert.equal(new Set(flat.map(({ id }) => id)).size, 1);
    assert.equal(await countOf(scene.store), 1);
  },

  "fifty at once with one key and different payloads: one accepted, forty-nine conflicts with it": async (scene) => {
    const instances = await scene.instances(50);
    const results = await Promise.all(
      instances.map((store, i) => store.enqueue([scene.message({ key: "race", payload: `{"n":${i}}` })], scene.at(0))),
    );
    assert.deepEqual(sorted(kinds(results.flat())), ["accepted", ...Array<string>(49).fill("conflict")]);
    assert.equal(new Set(results.flat().map(({ id }) => id)).size, 1);
    assert.equal(await countOf(scene.store), 1);
  },

  "eight callers, 200 keys in different orders: exactly 200 messages, all agree on their ids": async (scene) => {
    const instances = await scene.instances(8);
    const keys = Array.from({ length: 200 }, (_, i) => `key-${i}`);
    const agreed = new Map<string, Set<string>>(keys.map((key) => [key, new Set()]));
    let accepted = 0;
    const caller = async (store: Scene["store"]) => {
      const order = shuffled(keys);
      for (let from = 0; from < order.length; from += 25) {
        const batch = order.slice(from, from + 25);
        const messages = batch.map((key) => scene.message({ key, payload: A }));
        const results = await store.enqueue(messages, scene.at(0));
        for (const [i, { id }] of results.entries()) agreed.get(batch[i]!)?.add(id);
        accepted += results.filter(({ kind }) => kind === "accepted").length;
      }
    };
    await Promise.all(instances.map(caller));
    assert.equal(accepted, 200);
    assert.ok([...agreed.values()].every((ids) => ids.size === 1));
    assert.equal(await countOf(scene.store), 200);
  },
};
