/**
 * While a copy carries a message's effect to another receiver, the message itself is not sent: neither by a redrive nor by an edit.
 */
import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { SKIPPED } from "../../../src/recovery/redrive/redrive.ts";
import { carriedAmong } from "../../../src/recovery/redrive/select-sql.ts";
import { type Home, homeOf } from "../../../src/store/home.ts";
import { newMessage, seen } from "../../../src/testing/store-conformance/fixtures.ts";
import { COPIES, died, play, type RecoveryScene } from "./scene.ts";

const HOW = { limit: 100, quietMs: 0 };

/** Those of them whose copy is on its way. */
function carriedOf({ store }: RecoveryScene, ids: readonly string[]) {
  const { s, read } = homeOf(store) as Home;
  return carriedAmong(s, read("look for copies"), ids);
}

/** Dead letters, each with a copy on its way. */
async function copied(scene: RecoveryScene, count: number) {
  const ids = await scene.die(0, count);
  const { redrive, token } = await scene.started(1, { mode: "copy", select: { ids } });
  const carriers = ids.map(() => newMessage(scene.id(), { topic: COPIES }));
  const items = carriers.map((carrier, i) => ({ n: i + 1, carrier }));
  await scene.recovery.redrives.send(redrive.redriveId, token, items, scene.at(2));
  const by = (i: number) => ({ messageId: ids[i] as string, carrierId: carriers[i]?.id as string, redriveId: redrive.redriveId });
  return {
    ids,
    carriers: carriers.map(({ id }) => id),
    by,
    look: () => scene.recovery.redrives.look(redrive.redriveId, token, HOW, scene.at(9)),
  };
}

async function sends(scene: RecoveryScene, mode: "replay" | "new_key" | "resolve", ids: readonly string[]) {
  const { redrives } = scene.recovery;
  const { redrive, token } = await scene.started(20, { mode, select: { ids } });
  const carrier = () => (mode === "new_key" ? newMessage(scene.id()) : undefined);
  const items = ids.map((_, i) => ({ n: i + 1, carrier: carrier() }));
  const result = await redrives.send(redrive.redriveId, token, items, scene.at(21));
  const { data } = await redrives.items(redrive.redriveId, { limit: 10 });
  assert.equal(result.kind, "done");
  await redrives.keep(redrive.redriveId, token, { leaseMs: 1_000_000 }, scene.at(22));
  return data.map(({ state, reason }) => reason ?? state);
}

describe("running: carried", () => {
  it(
    "a message is carried while its copy is pending, processing, or delivered and the message not resolved yet",
    play(async (scene) => {
      const { ids, carriers, by, look } = await copied(scene, 4);
      const [, claimed, delivered, dead] = carriers as [string, string, string, string];
      await scene.store.claim({ owner: "w", leaseMs: 30_000, lanes: [], ids: [claimed], ...scene.at(3) });
      await scene.attempt(3, [delivered]);
      await scene.attempt(3, [dead], died());
      const carried = async () =>
        (await carriedOf(scene, [...ids, scene.id()])).sort((a, b) => (a.messageId < b.messageId ? -1 : 1));
      assert.deepEqual(await carried(), [by(0), by(1), by(2)]);
      await look();
      assert.equal((await seen(scene.store, ids[2] as string)).resolution, "resolved");
      assert.deepEqual(await carried(), [by(0), by(1)]);
      await scene.store.intervene({ id: dead, action: "replay", actor: "ops", reason: null, ...scene.at(10) });
      assert.deepEqual(await carried(), [by(0), by(1), by(3)], "a copy that is tried again is on its way again");
      assert.deepEqual(await carriedOf(scene, []), []);
    }),
  );

  it(
    "a redrive leaves what is carried alone, and sends it once the copy has failed",
    play(async (scene) => {
      const { ids, carriers } = await copied(scene, 3);
      await scene.attempt(3, [carriers[2] as string], died());
      const before = await seen(scene.store, ids[0] as string);
      assert.deepEqual(await sends(scene, "new_key", ids.slice(0, 1)), [SKIPPED.carried]);
      assert.deepEqual(await sends(scene, "replay", ids), [SKIPPED.carried, SKIPPED.carried, "sent"]);
      assert.deepEqual(await seen(scene.store, ids[0] as string), before, "nothing was done to it");
      assert.deepEqual(await sends(scene, "resolve", ids.slice(0, 1)), ["sent"], "who ends it sends nothing");
    }),
  );

  it(
    "a copy of a death that is over carries nothing",
    play(async (scene) => {
      const { ids, carriers, look } = await copied(scene, 1);
      const [id] = ids as [string];
      await scene.store.intervene({ id, action: "replay", actor: "ann", reason: "both", ...scene.at(3) });
      await scene.attempt(4, [id], died());
      assert.equal((await carriedOf(scene, ids)).length, 1, "its copy may still arrive");
      await scene.attempt(5, carriers);
      assert.deepEqual(await carriedOf(scene, ids), [], "it arrived, and this death is another one");
      await look();
      assert.deepEqual(await sends(scene, "replay", ids), ["sent"]);
    }),
  );

  it(
    "an edit of what is carried is refused, unless it is forced",
    play(async (scene) => {
      const { ids, by } = await copied(scene, 1);
      const [id] = ids as [string];
      const message = newMessage(scene.id());
      const edit = { id, message, actor: "ann", reason: "a typo", ...scene.at(5) };
      const { redrives } = scene.recovery;
      const { messageId, ...carried } = by(0);
      await assert.rejects(redrives.edit(edit), { code: "carried", detail: { id: messageId, ...carried } });
      assert.equal(await scene.store.get(message.id), null);
      const forced = await redrives.edit({ ...edit, force: true });
      assert.equal(forced.id, message.id);
      assert.deepEqual(await redrives.edit(edit), forced, "the same edit again is the same, whatever is carried");
    }),
  );
});
