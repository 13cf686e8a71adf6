/**
 * Edit and retry: a new message with another payload; the original is kept and says who decided.
 */
import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { NewMessage } from "../../../src/message/message.ts";
import type { MessageEdit } from "../../../src/recovery/redrive/edit.ts";
import { newMessage, OTHER, refused, seen } from "../../../src/testing/store-conformance/fixtures.ts";
import { play, type RecoveryScene } from "./scene.ts";

const editOf = (
  scene: RecoveryScene,
  id: string,
  message: NewMessage,
  ms: number,
  fields: Partial<MessageEdit> = {},
): MessageEdit => ({
  ...{ id, message, actor: "ann", reason: "wrong currency", ...scene.at(ms) },
  ...fields,
});

const PAYLOAD = '{"edited": 1.10}';

describe("editing", () => {
  it(
    "the edited message goes out under the same key, the original is kept, resolved, with who and why",
    play(async (scene) => {
      const [id] = (await scene.die(0, 1, { key: "k-1", tenantId: "t-1", payload: '{"first":1}' })) as [string];
      const message = newMessage(scene.id(), { key: "k-1", tenantId: "t-1", payload: PAYLOAD });
      const { revision } = await seen(scene.store, id);
      const noted = [scene.line({ eventType: "message_edited" })];
      const edited = await scene.recovery.redrives.edit(editOf(scene, id, message, 5, { revision, provenance: noted }));
      const { data } = await scene.recovery.provenance({}, { limit: 5 });
      assert.deepEqual(
        data.map(({ eventType, at }) => [eventType, at]),
        [["message_edited", scene.at(5).now]],
      );
      assert.deepEqual([edited.id, edited.status, edited.payload, edited.key], [message.id, "pending", PAYLOAD, "k-1"]);
      assert.deepEqual(await seen(scene.store, message.id), edited);
      const original = await seen(scene.store, id);
      assert.deepEqual([original.status, original.resolution, original.payload], ["dead", "resolved", '{"first":1}']);
      const { provenance } = await scene.store.history(id);
      assert.deepEqual(provenance, [{ at: scene.at(5).now, actor: "ann", action: "resolve", reason: "wrong currency" }]);
      const origin = { replayOf: id, redriveId: null, edited: true };
      assert.deepEqual(await scene.recovery.redrives.origin(message.id), origin);
      await scene.attempt(6, [message.id]);
    }),
  );

  it(
    "the key leads to the edited message from now on",
    play(async (scene) => {
      const [id] = (await scene.die(0, 1, { key: "k-1", payload: '{"first":1}' })) as [string];
      const message = newMessage(scene.id(), { key: "k-1", payload: PAYLOAD });
      await scene.recovery.redrives.edit(editOf(scene, id, message, 5));
      const repeat = (payload: string) => scene.store.enqueue([newMessage(scene.id(), { key: "k-1", payload })], scene.at(6));
      assert.deepEqual(await repeat(PAYLOAD), [{ kind: "duplicate", id: message.id }]);
      assert.deepEqual(await repeat('{"first":1}'), [{ kind: "conflict", id: message.id }]);
    }),
  );

  it(
    "an edited message that dies can be edited again; the one before cannot",
    play(async (scene) => {
      const [id] = (await scene.die(0, 1, { key: "k-1" })) as [string];
      const second = newMessage(scene.id(), { key: "k-1", payload: PAYLOAD });
      const third = newMessage(scene.id(), { key: "k-1", payload: '{"third":1}' });
      const { redrives } = scene.recovery;
      await redrives.edit(editOf(scene, id, second, 1));
      await scene.attempt(2, [second.id], { kind: "dead", blocksOrder: false, outcome: "reject", code: "x", error: null });
      await assert.rejects(redrives.edit(editOf(scene, id, third, 3)), {
        code: "wrong_state",
        detail: { id, status: "dead", resolution: "resolved" },
      });
      assert.equal((await redrives.edit(editOf(scene, second.id, third, 4))).id, third.id);
      assert.equal((await redrives.origin(third.id))?.replayOf, second.id);
    }),
  );

  it(
    "another key, or none: what belongs to another message is refused",
    play(async (scene) => {
      const [a, b] = (await scene.die(0, 2, {})) as [string, string];
      const [holder] = (await scene.accept(1, { key: "taken" })) as [string];
      const { redrives } = scene.recovery;
      const taken = newMessage(scene.id(), { key: "taken", payload: PAYLOAD });
      await assert.rejects(redrives.edit(editOf(scene, a, taken, 2)), {
        code: "key_conflict",
        detail: { id: holder, key: "taken" },
      });
      assert.equal(await scene.store.get(taken.id), null);
      assert.equal((await seen(scene.store, a)).resolution, "open");
      const free = newMessage(scene.id(), { key: "free", payload: PAYLOAD });
      assert.equal((await redrives.edit(editOf(scene, a, free, 3))).id, free.id);
      assert.equal((await redrives.edit(editOf(scene, b, newMessage(scene.id()), 4))).status, "pending");
    }),
  );

  it(
    "an edit is refused for what is not an open dead letter, another revision, topic or tenant",
    play(async (scene) => {
      const [id] = (await scene.die(0)) as [string];
      const [pending] = (await scene.accept(1)) as [string];
      const { redrives } = scene.recovery;
      const message = newMessage(scene.id());
      await refused("message_not_found", () => redrives.edit(editOf(scene, scene.id(), message, 2)));
      const { revision } = await seen(scene.store, id);
      const stale = editOf(scene, id, message, 2, { revision: revision + 4 });
      await assert.rejects(redrives.edit(stale), { code: "revision_conflict", detail: { id, revision } });
      await refused("wrong_state", () => redrives.edit(editOf(scene, pending, message, 2)));
      const elsewhere = newMessage(scene.id(), { topic: OTHER });
      await refused("invalid_request", () => redrives.edit(editOf(scene, id, elsewhere, 3)));
      const others = newMessage(scene.id(), { tenantId: "t-2" });
      await refused("invalid_request", () => redrives.edit(editOf(scene, id, others, 3)));
      assert.equal(await scene.store.get(message.id), null);
      assert.equal(await redrives.origin(message.id), null);
    }),
  );

  it(
    "the same edit again, after an answer that was lost, is the same edit",
    play(async (scene) => {
      const [id] = (await scene.die(0, 1, { key: "k-1" })) as [string];
      const message = newMessage(scene.id(), { key: "k-1", payload: PAYLOAD });
      const { revision } = await seen(scene.store, id);
      const edit = editOf(scene, id, message, 1, { revision });
      const first = await scene.recovery.redrives.edit(edit);
      assert.deepEqual(await scene.recovery.redrives.edit(edit), first);
      assert.equal(first.id, message.id);
      assert.equal((await scene.store.history(id)).provenance.length, 1);
    }),
  );
});
