/**
 * What became of it: healed, failed or not known yet, and what is learned from that.
 */
import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { NewMessage } from "../../../src/message/message.ts";
import type { Ingested } from "../../../src/recovery/failures/ingest.ts";
import type { NewRedrive, RedriveCounts, RedriveMode } from "../../../src/recovery/redrive/redrive.ts";
import { hold, newMessage, seen } from "../../../src/testing/store-conformance/fixtures.ts";
import { COPIES, died, play, type RecoveryScene, retried } from "./scene.ts";

interface Running {
  readonly ids: string[];
  readonly groupId: number;
  readonly carriers: string[];
  /** Items by their states, and the reasons of those that ended, after a look at `ms`. */
  look(ms: number, more?: { readonly limit?: number; readonly quietMs?: number }): Promise<unknown[]>;
  counts(): Promise<RedriveCounts | undefined>;
  /** `[healed, failed]` of each observation of the redrive's action. */
  learned(): Promise<unknown[]>;
}

/** So many dead letters of one group, sent by one redrive at 10. */
async function running(scene: RecoveryScene, mode: RedriveMode, count: number, fields: Partial<Omit<NewRedrive, "select">> = {}) {
  const ids = await scene.die(0, count);
  const [{ groupId }] = (await scene.ingestDeaths(1, "slow", ids)) as [Ingested];
  const { redrive, token } = await scene.started(2, { mode, action: "the_action", ...fields });
  const carried = mode === "copy" || mode === "new_key";
  const carriers = carried ? ids.map(() => newMessage(scene.id(), { topic: COPIES })) : [];
  const items = ids.map((_, i) => ({ n: i + 1, carrier: carriers[i] }));
  const { redrives } = scene.recovery;
  assert.deepEqual(await redrives.send(redrive.redriveId, token, items, scene.at(10)), { kind: "done", sent: count, skipped: 0 });
  const result: Running = {
    ids,
    groupId,
    carriers: carriers.map(({ id }) => id),
    async look(ms, { limit = 100, quietMs = 0 } = {}) {
      const how = { limit, quietMs };
      const counts = await redrives.look(redrive.redriveId, token, how, scene.at(ms));
      assert.deepEqual(counts, await result.counts());
      const { data } = await redrives.items(redrive.redriveId, { limit: 100 });
      return data.map(({ state, reason }) => (reason === null ? state : `${state}: ${reason}`));
    },
    counts: async () => (await redrives.get(redrive.redriveId))?.counts,
    async learned() {
      const observations = (await scene.recovery.observations(groupId)).filter(({ action }) => action === "the_action");
      for (const each of observations) assert.equal(each.groupId, groupId);
      return observations.map(({ healed, failed }) => [healed, failed]);
    },
  };
  return result;
}

/** One execution is one observation, however often it was looked at. */
const observedOnce = (healed: number, failed: number) => [[healed, failed]];

describe("looking", () => {
  it(
    "DR-30: replay: delivered is healed, dead again is failed, the rest is not known; that is what is learned",
    play(async (scene) => {
      const { ids, look, learned, counts } = await running(scene, "replay", 4);
      const [a, b, c, d] = ids as [string, string, string, string];
      assert.deepEqual(await look(11), ["sent", "sent", "sent", "sent"]);
      assert.deepEqual(await learned(), [], "that it was sent says nothing");
      await scene.attempt(20, [a]);
      await scene.attempt(20, [b], died());
      await scene.attempt(20, [c], retried());
      assert.deepEqual(await look(21), ["healed: delivered", "failed: dead_again", "sent", "sent"]);
      assert.deepEqual(await learned(), observedOnce(1, 1));
      assert.deepEqual(await look(22), ["healed: delivered", "failed: dead_again", "sent", "sent"]);
      assert.deepEqual(await learned(), observedOnce(1, 1), "each message teaches once");
      await scene.attempt(30, [c, d]);
      await look(31);
      assert.deepEqual(await learned(), observedOnce(3, 1));
      assert.deepEqual(await counts(), { selected: 4, waiting: 0, sent: 0, healed: 3, failed: 1, skipped: 0 });
    }),
  );

  it(
    "replay: what people do to it afterwards counts: resolved healed, discarded or replayed again failed",
    play(async (scene) => {
      const { ids, look, learned } = await running(scene, "replay", 3);
      const [a, b, c] = ids as [string, string, string];
      await scene.attempt(20, ids, hold());
      assert.deepEqual(await look(21), ["sent", "sent", "sent"], "held is not known yet");
      const person = { actor: "bo", reason: null };
      await scene.store.intervene({ id: a, action: "resolve", ...person, ...scene.at(22) });
      await scene.store.intervene({ id: b, action: "discard", ...person, ...scene.at(22) });
      await scene.store.intervene({ id: c, action: "replay", ...person, ...scene.at(22) });
      assert.deepEqual(await look(23), ["healed: resolved", "failed: discarded", "failed: replayed_again"]);
      assert.deepEqual(await learned(), observedOnce(1, 2));
    }),
  );

  it(
    "copy: the original is resolved once the copy is delivered, and stays open when it is not",
    play(async (scene) => {
      const { ids, carriers, look, learned } = await running(scene, "copy", 3);
      const [a, b, c] = carriers as [string, string, string];
      await scene.attempt(20, [a]);
      await scene.attempt(20, [b], died());
      await scene.attempt(20, [c]);
      await scene.store.intervene({ id: ids[2] as string, action: "replay", actor: "bo", reason: null, ...scene.at(21) });
      await scene.attempt(21, [ids[2] as string], died());
      assert.deepEqual(await look(22), ["healed: delivered", "failed: dead_again", "healed: delivered"]);
      const after = await Promise.all(ids.map((id) => seen(scene.store, id)));
      assert.deepEqual(
        after.map(({ status, resolution }) => [status, resolution]),
        [
          ["dead", "resolved"],
          ["dead", "open"],
          ["dead", "open"],
        ],
        "one that died again in between is left alone",
      );
      const { provenance } = await scene.store.history(ids[0] as string);
      assert.deepEqual(
        provenance.map(({ action, actor, reason }) => [action, actor, reason]),
        [["resolve", "ann", "the receiver is back"]],
      );
      assert.deepEqual(await learned(), observedOnce(2, 1));
    }),
  );

  it(
    "new_key: the new message is what counts",
    play(async (scene) => {
      const { carriers, look, learned } = await running(scene, "new_key", 2);
      await scene.attempt(20, [carriers[0] as string]);
      await scene.attempt(20, [carriers[1] as string], died());
      assert.deepEqual(await look(22), ["healed: delivered", "failed: dead_again"]);
      assert.deepEqual(await learned(), observedOnce(1, 1));
    }),
  );

  it(
    "resolve: healed when it stayed resolved for the quiet time",
    play(async (scene) => {
      const { look, learned } = await running(scene, "resolve", 2);
      assert.deepEqual(await look(509, { quietMs: 500 }), ["sent", "sent"]);
      assert.deepEqual(await learned(), []);
      assert.deepEqual(await look(510, { quietMs: 500 }), ["healed: resolved", "healed: resolved"]);
      assert.deepEqual(await learned(), observedOnce(2, 0));
    }),
  );

  it(
    "watch: what a person makes of it; lying there is no news",
    play(async (scene) => {
      const { ids, ...watch } = await running(scene, "watch", 4);
      const look = (ms: number) => watch.look(ms, { quietMs: 1_000 });
      const [a, b, c] = ids as [string, string, string];
      assert.deepEqual(await look(15), ["sent", "sent", "sent", "sent"]);
      const person = { actor: "bo", reason: null };
      await scene.store.intervene({ id: a, action: "resolve", ...person, ...scene.at(20) });
      for (const id of [b, c]) await scene.store.intervene({ id, action: "replay", ...person, ...scene.at(20) });
      assert.deepEqual(await look(21), ["healed: resolved", "sent", "sent", "sent"]);
      await scene.attempt(22, [b]);
      await scene.attempt(22, [c], died());
      assert.deepEqual(await look(23), ["healed: resolved", "healed: delivered", "failed: dead_again", "sent"]);
    }),
  );

  it(
    "a look takes those that were looked at longest ago",
    play(async (scene) => {
      const { ids, look } = await running(scene, "replay", 4);
      await look(20, { limit: 2 });
      await scene.attempt(21, ids);
      assert.deepEqual(await look(22, { limit: 2 }), ["sent", "sent", "healed: delivered", "healed: delivered"]);
    }),
  );

  it(
    "without an action nothing is learned; a merged group learns where it went",
    play(async (scene) => {
      const plain = await running(scene, "replay", 1, { action: null });
      await scene.attempt(20, plain.ids);
      assert.deepEqual(await plain.look(21), ["healed: delivered"]);
      assert.deepEqual((await scene.recovery.stats([])).outcomes, []);
      const [other] = (await scene.ingest(30, scene.failure("other"))) as [Ingested];
      const [id] = (await scene.die(31)) as [string];
      await scene.ingestDeaths(32, "slow", [id]);
      const request = { action: "the_action", select: { ids: [id] } };
      const { redrives } = scene.recovery;
      const start = scene.redrive(request);
      await redrives.start(start, scene.at(33));
      const claim = await redrives.claim("runner", 1_000, scene.at(33));
      assert.equal(claim?.redrive.redriveId, start.redriveId, "the other one has nothing left to know, but it still runs");
      await redrives.send(start.redriveId, claim?.token as string, [{ n: 1 }], scene.at(34));
      await scene.recovery.merge({ from: plain.groupId, into: other.groupId, provenance: [], ...scene.at(35) });
      await scene.attempt(36, [id]);
      await redrives.look(start.redriveId, claim?.token as string, { limit: 5, quietMs: 0 }, scene.at(37));
      const observations = await scene.recovery.observations(other.groupId);
      assert.deepEqual(
        observations.map(({ groupId, healed, failed }) => [groupId, healed, failed]),
        [[other.groupId, 1, 0]],
      );
    }),
  );
});

/** Another redrive over the same messages, sent at `ms`. */
async function another(scene: RecoveryScene, mode: RedriveMode, ms: number, carriers: readonly NewMessage[] = []) {
  const { redrives } = scene.recovery;
  const request = scene.redrive({ mode, action: "another" });
  const started = await redrives.start(request, scene.at(ms));
  assert.equal(started.kind, "started");
  // The first one's lease is over by then.
  for (let claim = await redrives.claim("other", 100, scene.at(ms)); ; claim = await redrives.claim("other", 100, scene.at(ms))) {
    assert.ok(claim, "it can be claimed");
    if (claim.redrive.redriveId !== request.redriveId) continue;
    const { data } = await redrives.items(request.redriveId, { limit: 100 });
    const items = data.map(({ n }, i) => ({ n, carrier: carriers[i] }));
    const sent = await redrives.send(request.redriveId, claim.token, items, scene.at(ms));
    assert.deepEqual(sent, { kind: "done", sent: data.length, skipped: 0 });
    return { id: request.redriveId, token: claim.token };
  }
}

describe("looking: watched", () => {
  it(
    "what was watched in vain for the quiet time is let go, and teaches nothing",
    play(async (scene) => {
      const { look, learned, counts } = await running(scene, "watch", 1);
      assert.deepEqual(await look(509, { quietMs: 500 }), ["sent"]);
      assert.deepEqual(await look(510, { quietMs: 500 }), ["skipped: not_known"]);
      assert.deepEqual(await counts(), { selected: 1, waiting: 0, sent: 0, healed: 0, failed: 0, skipped: 1 });
      assert.deepEqual(await learned(), []);
    }),
  );

  it(
    "what another redrive took up meanwhile is not what the watching one healed",
    play(async (scene) => {
      const { ids, look, learned, counts } = await running(scene, "watch", 2);
      assert.deepEqual(await look(11, { quietMs: 1_000 }), ["sent", "sent"]);
      await another(scene, "replay", 20);
      await scene.attempt(21, ids);
      assert.deepEqual(await look(22, { quietMs: 1_000 }), ["skipped: taken_over", "skipped: taken_over"]);
      assert.deepEqual(await learned(), []);
      assert.deepEqual(await counts(), { selected: 2, waiting: 0, sent: 0, healed: 0, failed: 0, skipped: 2 });
    }),
  );

  it(
    "of two that watch one message, the later one learns from it",
    play((scene) => twoWatch(scene, 20)),
  );

  it(
    "of two that began to watch at one moment, the one with the greater id learns from it",
    play((scene) => twoWatch(scene, 10)),
  );
});

/** Two that watch one message, the second from `ms` on; what becomes of it teaches once. */
async function twoWatch(scene: RecoveryScene, ms: number): Promise<void> {
  const { ids, groupId, look } = await running(scene, "watch", 1);
  const { id, token } = await another(scene, "watch", ms);
  await scene.store.intervene({ id: ids[0] as string, action: "replay", actor: "bo", reason: null, ...scene.at(21) });
  await scene.attempt(22, ids);
  assert.deepEqual(await look(23, { quietMs: 1_000 }), ["skipped: taken_over"]);
  const how = { limit: 10, quietMs: 1_000 };
  assert.equal((await scene.recovery.redrives.look(id, token, how, scene.at(24)))?.healed, 1);
  const observations = await scene.recovery.observations(groupId);
  assert.deepEqual(
    observations.map(({ action, healed, failed }) => [action, healed, failed]),
    [["another", 1, 0]],
  );
}

describe("looking: again", () => {
  it(
    "a copy that died and is delivered after all resolves its original, whenever that is",
    play(async (scene) => {
      const { ids, carriers, look, counts } = await running(scene, "copy", 3);
      await scene.attempt(20, carriers, died());
      const failed = Array(3).fill("failed: dead_again");
      assert.deepEqual(await look(21), failed);
      const { redrives } = scene.recovery;
      assert.equal(await redrives.lookAgain(10, scene.at(22)), 3);
      const person = { action: "replay", actor: "bo", reason: null } as const;
      for (const id of carriers) await scene.store.intervene({ id, ...person, ...scene.at(30) });
      // A person has decided about the third original meanwhile.
      await scene.store.intervene({ id: ids[2] as string, ...person, ...scene.at(30) });
      await scene.attempt(31, [ids[2] as string], died());
      await scene.attempt(31, [carriers[0] as string, carriers[2] as string]);
      assert.equal(await redrives.lookAgain(10, scene.at(32)), 3);
      const resolutions = async () => (await Promise.all(ids.map((id) => seen(scene.store, id)))).map((each) => each.resolution);
      assert.deepEqual(await resolutions(), ["resolved", "open", "open"]);
      const { provenance } = await scene.store.history(ids[0] as string);
      assert.deepEqual(
        provenance.map(({ action, actor, reason }) => [action, actor, reason]),
        [["resolve", "ann", "the receiver is back"]],
      );
      assert.deepEqual(await look(33), failed, "a person's replay is not what the redrive did");
      await scene.attempt(40, [carriers[1] as string]);
      assert.equal(await redrives.lookAgain(10, scene.at(41)), 1, "only what may still come is looked at");
      assert.deepEqual(await resolutions(), ["resolved", "resolved", "open"]);
      assert.equal(await redrives.lookAgain(10, scene.at(42)), 0);
      assert.deepEqual(await counts(), { selected: 3, waiting: 0, sent: 0, healed: 0, failed: 3, skipped: 0 });
    }),
  );

  it(
    "copies looked at longest ago come first",
    play(async (scene) => {
      const { ids, carriers, look } = await running(scene, "copy", 3);
      await scene.attempt(20, carriers, died());
      await look(21);
      const { redrives } = scene.recovery;
      assert.equal(await redrives.lookAgain(2, scene.at(22)), 2);
      await scene.store.intervene({ id: carriers[2] as string, action: "replay", actor: "bo", reason: null, ...scene.at(23) });
      await scene.attempt(24, [carriers[2] as string]);
      await redrives.lookAgain(1, scene.at(25));
      assert.equal((await seen(scene.store, ids[2] as string)).resolution, "resolved");
    }),
  );

  it(
    "new_key: a new message that died has no original to resolve",
    play(async (scene) => {
      const { carriers, look } = await running(scene, "new_key", 1);
      await scene.attempt(20, carriers, died());
      await look(21);
      assert.equal(await scene.recovery.redrives.lookAgain(2, scene.at(22)), 1);
      assert.equal(await scene.recovery.redrives.lookAgain(2, scene.at(23)), 0);
    }),
  );
});
