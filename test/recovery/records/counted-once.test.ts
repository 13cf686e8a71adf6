/**
 * A message of ours counts once per generation and group, also when its fingerprint, and with it its key, became another one between an
 * early report and its death.
 */
import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { NewOccurrence } from "../../../src/recovery/failures/failure.ts";
import type { Ingested } from "../../../src/recovery/failures/ingest.ts";
import { hashOf } from "../../../src/testing/store-conformance/fixtures.ts";
import { died, play, type RecoveryScene, retried } from "./scene.ts";

/** A failure of the kind `name` of this message, as the engine names it in the ledger. */
function failureOf(scene: RecoveryScene, name: string, id: string, { attempts = 1, generation = 0 } = {}): NewOccurrence {
  return scene.failure(name, {
    requestKey: `message:${id}:${generation}:${name}`,
    payloadHash: hashOf(`${id}:${generation}`),
    source: "message",
    message: { id, generation, attempts },
    failurePayload: null,
  });
}

describe("deaths", () => {
  it(
    "under the key of a more general fingerprint it is the same one, once both are one group",
    play(async (scene) => {
      const [id] = (await scene.accept(0, {})) as [string];
      const [early] = (await scene.ingest(1, failureOf(scene, "one", id))) as [Ingested];
      const [general] = (await scene.ingest(2, scene.failure("general"))) as [Ingested];
      await scene.recovery.merge({ from: early.groupId, into: general.groupId, provenance: [], ...scene.at(3) });
      await scene.attempt(4, [id], retried());
      await scene.attempt(5, [id], died());
      const [death] = (await scene.ingest(6, failureOf(scene, "general", id, { attempts: 2 }))) as [Ingested];
      assert.deepEqual([death.kind, death.groupId, death.occurrenceCount], ["duplicate", general.groupId, 2]);
      const group = await scene.recovery.group(general.groupId);
      assert.deepEqual([group?.occurrenceCount, group?.openMessages], [2, 1], "it lies open in the group all the same");
      assert.deepEqual(await scene.recovery.uningested(10, []), [], "and is not queued for ever");
      const { data } = await scene.recovery.occurrences(general.groupId, { limit: 10, open: true });
      assert.deepEqual(
        data.map(({ message }) => message),
        [{ id, generation: 0, attempts: 2 }],
      );
    }),
  );

  it(
    "two reports of one message in one call, under two keys, are one",
    play(async (scene) => {
      const [id] = (await scene.die(0)) as [string];
      const again = { ...failureOf(scene, "one", id), requestKey: "another" };
      const answers = await scene.ingest(1, failureOf(scene, "one", id), again);
      assert.deepEqual(
        answers.map(({ kind, occurrenceCount }) => [kind, occurrenceCount]),
        [
          ["accepted", 1],
          ["duplicate", 1],
        ],
      );
    }),
  );

  it(
    "another generation counts again, and so does another group",
    play(async (scene) => {
      const [id] = (await scene.die(0)) as [string];
      await scene.ingest(1, failureOf(scene, "one", id));
      const [other] = await scene.ingest(2, failureOf(scene, "other", id));
      const [later] = await scene.ingest(3, failureOf(scene, "one", id, { generation: 1, attempts: 2 }));
      assert.deepEqual(
        [other?.kind, other?.occurrenceCount, later?.kind, later?.occurrenceCount],
        ["accepted", 1, "accepted", 2],
      );
    }),
  );
});
