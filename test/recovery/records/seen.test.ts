/**
 * What was seen is what is listed: a select with a preview's mark holds nothing that came after that preview, also with an
 * earlier time.
 */
import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { Ingested } from "../../../src/recovery/failures/ingest.ts";
import type { Redrive, RedrivePreview, RedriveSelect } from "../../../src/recovery/redrive/redrive.ts";
import { PLAIN, refused } from "../../../src/testing/store-conformance/fixtures.ts";
import { died, play, type RecoveryScene } from "./scene.ts";

const ANY = { limit: 100, generationMax: 10 };

const look = (scene: RecoveryScene, select: Partial<RedriveSelect>): Promise<RedrivePreview> =>
  scene.recovery.redrives.preview({ ...ANY, ...select });

/** The messages a select lists, in its order; a preview of it must count the same. */
async function listed(scene: RecoveryScene, select: Partial<RedriveSelect>): Promise<string[]> {
  const started = await scene.recovery.redrives.start(scene.redrive({ status: "planned", select }), scene.at(50));
  const { redriveId: id } = (started as { redrive: Redrive }).redrive;
  const { data } = await scene.recovery.redrives.items(id, { limit: 100 });
  const { messages, seen } = await look(scene, select);
  assert.equal(messages, data.length, "what is shown is what is listed");
  if (select.seen !== undefined) assert.equal(seen, select.seen, "the mark stays the one that was given");
  return data.map(({ messageId }) => messageId);
}

const replay = (scene: RecoveryScene, id: string, ms: number) =>
  scene.store.intervene({ id, action: "replay", actor: "ann", reason: null, ...scene.at(ms) });

describe("redrives: what was seen", () => {
  it(
    "what dies after a preview is not in its list, though another moved on and its death is the older one",
    play(async (scene) => {
      const [a, b, c] = (await scene.accept(0, {}, {}, {})) as [string, string, string];
      await scene.attempt(5, [a, b], died());
      const [{ groupId }] = (await scene.ingestDeaths(6, "slow", [a, b])) as [Ingested];
      const [group, topic] = [await look(scene, { groupId }), await look(scene, { topic: PLAIN })];
      assert.deepEqual([group.messages, topic.messages], [2, 2]);
      await replay(scene, a, 7);
      await scene.attempt(1, [c], died());
      await scene.ingestDeaths(8, "slow", [c]);
      for (const select of [{ groupId }, { topic: PLAIN }, { ids: [a, b, c] }, { code: "http_503" }])
        assert.deepEqual(await listed(scene, select), [c, b], "without a mark it is what there is now");
      assert.deepEqual(await listed(scene, { groupId, seen: group.seen }), [b]);
      for (const select of [{ topic: PLAIN }, { ids: [a, b, c] }, { code: "http_503" }])
        assert.deepEqual(await listed(scene, { ...select, seen: topic.seen }), [b]);
      const { seen } = await look(scene, { groupId });
      assert.deepEqual(await listed(scene, { groupId, seen }), [c, b], "a later preview saw it");
    }),
  );

  it(
    "a message that was seen and died again is another death",
    play(async (scene) => {
      const [a, b] = (await scene.die(0, 2)) as [string, string];
      const [{ groupId }] = (await scene.ingestDeaths(1, "slow", [a, b])) as [Ingested];
      const [group, topic] = [await look(scene, { groupId }), await look(scene, { topic: PLAIN })];
      await replay(scene, a, 2);
      await scene.attempt(3, [a], died());
      assert.deepEqual(await listed(scene, { topic: PLAIN, seen: topic.seen }), [b]);
      await scene.ingestDeaths(4, "slow", [a]);
      assert.deepEqual(await listed(scene, { groupId, seen: group.seen }), [b]);
    }),
  );

  it(
    "counting a death changes nothing about whether it was seen; in its group it was not seen before",
    play(async (scene) => {
      const [a, b] = (await scene.die(0, 2)) as [string, string];
      const [{ groupId }] = (await scene.ingestDeaths(1, "slow", [b])) as [Ingested];
      const [group, topic] = [await look(scene, { groupId }), await look(scene, { topic: PLAIN })];
      await scene.ingestDeaths(2, "slow", [a]);
      assert.deepEqual(await listed(scene, { groupId, seen: group.seen }), [b]);
      assert.deepEqual(await listed(scene, { topic: PLAIN, seen: topic.seen }), [a, b]);
      const { seen } = await look(scene, { groupId });
      await scene.ingest(3, scene.failure("slow"), scene.failure("other"));
      assert.deepEqual(await listed(scene, { groupId, seen }), [a, b], "failures of others take nothing away");
    }),
  );

  it(
    "a group that was merged, held or got messages of another was not seen as it is",
    play(async (scene) => {
      const [a, b] = (await scene.die(0, 2)) as [string, string];
      const [one] = (await scene.ingestDeaths(1, "slow", [a])) as [Ingested];
      const [two] = (await scene.ingestDeaths(1, "refused", [b])) as [Ingested];
      const into = { groupId: one.groupId };
      const before = await look(scene, into);
      const { data } = await scene.recovery.occurrences(two.groupId, { limit: 5 });
      const moved = data.map(({ occurrenceId }) => occurrenceId);
      assert.equal(await scene.recovery.moveOccurrences(two.groupId, one.groupId, moved, scene.at(2)), 1);
      assert.deepEqual(await listed(scene, { ...into, seen: before.seen }), [a]);
      assert.deepEqual(await listed(scene, into), [a, b]);
      const both = await look(scene, into);
      await scene.done({ candidateId: one.candidateId, patch: { heldBy: "ann" } }, 3);
      assert.deepEqual(await listed(scene, { ...into, seen: both.seen }), []);
      const held = await look(scene, into);
      await scene.recovery.merge({ from: two.groupId, into: one.groupId, provenance: [], ...scene.at(4) });
      assert.deepEqual(await listed(scene, { ...into, seen: held.seen }), []);
      const { seen } = await look(scene, { groupId: two.groupId });
      for (const { groupId } of [one, two]) assert.deepEqual(await listed(scene, { groupId, seen }), [a, b]);
    }),
  );

  it(
    "what a limit cut off was not seen",
    play(async (scene) => {
      const [a, b, c] = (await scene.die(0, 3)) as [string, string, string];
      const [{ groupId }] = (await scene.ingestDeaths(1, "slow", [a, b, c])) as [Ingested];
      for (const select of [
        { groupId, limit: 2 },
        { topic: PLAIN, limit: 2 },
      ]) {
        const { seen, messages } = await look(scene, select);
        assert.equal(messages, 2);
        assert.deepEqual(await listed(scene, { ...select, limit: 100, seen }), [a, b]);
      }
      const { seen } = await look(scene, { groupId, limit: 2 });
      await replay(scene, a, 2);
      assert.deepEqual(await listed(scene, { groupId, limit: 2, seen }), [b]);
    }),
  );

  it(
    "a preview that saw nothing has a mark too; what is no mark is refused",
    play(async (scene) => {
      const { messages, seen } = await look(scene, { topic: PLAIN });
      assert.equal(messages, 0);
      await scene.die(0);
      assert.deepEqual(await listed(scene, { topic: PLAIN, seen }), []);
      const { redrives } = scene.recovery;
      const before = (await redrives.list({ limit: 5 })).data.length;
      for (const wrong of ["", "no", "5:3:", "1:9:5,3", `${seen}x`, `${seen};g1`, `${seen};d1.x`, "1'", `${"9".repeat(30)}:1:`]) {
        await refused("invalid_request", () => look(scene, { topic: PLAIN, seen: wrong }));
        await refused("invalid_request", () => redrives.start(scene.redrive({ select: { seen: wrong } }), scene.at(5)));
      }
      assert.equal((await redrives.list({ limit: 5 })).data.length, before);
    }),
  );
});
