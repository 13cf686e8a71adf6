/**
 * Retention takes settled messages away while groups, lists and keys still speak of them. A store may keep them a day or two longer, so
 * a case waits longer than that.
 */
import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { Ingested } from "../../../src/recovery/failures/ingest.ts";
import { SKIPPED } from "../../../src/recovery/redrive/redrive.ts";
import { DAY, newMessage } from "../../../src/testing/store-conformance/fixtures.ts";
import { play, type RecoveryScene } from "./scene.ts";

const LATER = 9 * DAY;

/** Prunes until nothing more goes; these must be gone then. */
async function pruned(scene: RecoveryScene, ids: readonly string[]): Promise<void> {
  for (let went = 1; went > 0; ) went = await scene.store.prune({ keptMs: 3 * DAY, limit: 10_000, ...scene.at(LATER) });
  for (const id of ids) assert.equal(await scene.store.get(id), null, "it is past its time");
}

describe("pruned", () => {
  it(
    "what became of a message that is gone is not learned; what waited for it is skipped; it stays counted",
    play(async (scene) => {
      const ids = await scene.die(0, 3);
      const [sent, resolved, open] = ids as [string, string, string];
      const [{ groupId }] = (await scene.ingestDeaths(1, "slow", ids)) as [Ingested];
      const { redrive, token } = await scene.started(2, { action: "retry" });
      const { redrives } = scene.recovery;
      await redrives.send(redrive.redriveId, token, [{ n: 1 }], scene.at(3));
      await scene.attempt(4, [sent]);
      await scene.store.intervene({ id: resolved, action: "resolve", actor: "bo", reason: null, ...scene.at(5) });
      await pruned(scene, [sent, resolved]);
      const next = await redrives.next(redrive.redriveId, 5, true);
      assert.deepEqual(
        next.map(({ item, message }) => [item.messageId, message?.id ?? null]),
        [
          [resolved, null],
          [open, open],
        ],
      );
      const result = await redrives.send(redrive.redriveId, token, [{ n: 2 }, { n: 3 }], scene.at(LATER + 1));
      assert.deepEqual(result, { kind: "done", sent: 1, skipped: 1 });
      const how = { limit: 10, quietMs: 0 };
      await redrives.look(redrive.redriveId, token, how, scene.at(LATER + 2));
      const { data } = await redrives.items(redrive.redriveId, { limit: 5 });
      assert.deepEqual(
        data.map(({ state, reason }) => [state, reason]),
        [
          ["healed", "pruned"],
          ["skipped", SKIPPED.gone],
          ["sent", null],
        ],
      );
      assert.deepEqual(await scene.recovery.observations(groupId), []);
      const occurrences = await scene.recovery.occurrences(groupId, { limit: 5 });
      assert.deepEqual(
        occurrences.data.map(({ open: isOpen }) => isOpen),
        [false, false, false],
      );
      assert.equal((await scene.recovery.group(groupId))?.occurrenceCount, 3);
      assert.equal((await scene.recovery.groupOf({ messageId: sent }))?.groupId, groupId);
    }),
  );

  it(
    "a key that an edit handed on outlives the original",
    play(async (scene) => {
      const [id] = (await scene.die(0, 1, { key: "k-1" })) as [string];
      const message = newMessage(scene.id(), { key: "k-1", payload: '{"edited":1}', delayMs: 20 * DAY });
      const edit = { id, message, actor: "ann", reason: "wrong currency", ...scene.at(1) };
      assert.equal((await scene.recovery.redrives.edit(edit)).status, "pending");
      await pruned(scene, [id]);
      const again = newMessage(scene.id(), { key: "k-1", payload: '{"edited":1}' });
      assert.deepEqual(await scene.store.enqueue([again], scene.at(LATER + 1)), [{ kind: "duplicate", id: message.id }]);
      assert.equal((await scene.recovery.redrives.origin(message.id))?.replayOf, id);
    }),
  );
});
