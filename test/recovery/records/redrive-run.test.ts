/**
 * Running a redrive: one runner at a time, each item once, nothing under a stale token.
 */
import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { NewMessage } from "../../../src/message/message.ts";
import { SKIPPED } from "../../../src/recovery/redrive/redrive.ts";
import type { RedriveItem } from "../../../src/recovery/redrive/redrive-sql.ts";
import { newMessage, refused, seen } from "../../../src/testing/store-conformance/fixtures.ts";
import { COPIES, died, play, type RecoveryScene } from "./scene.ts";

describe("running: leases", () => {
  it(
    "one runner holds a redrive until its lease is over or given up; planned ones wait for a person",
    play(async (scene) => {
      await scene.die(0);
      const { redrives } = scene.recovery;
      await redrives.start(scene.redrive({ status: "planned" }), scene.at(0));
      assert.equal(await redrives.claim("a", 1_000, scene.at(1)), null);
      const { redrive, token } = await scene.started(2);
      assert.equal(await redrives.claim("b", 1_000, scene.at(10_001)), null);
      const taken = await redrives.claim("b", 1_000, scene.at(10_002));
      assert.equal(taken?.redrive.redriveId, redrive.redriveId);
      assert.notEqual(taken?.token, token);
      assert.equal(await redrives.keep(redrive.redriveId, token, { leaseMs: 99_000, state: '"stale"' }, scene.at(10_003)), false);
      assert.equal(await redrives.claim("c", 1_000, scene.at(11_001)), null);
      const second = taken?.token as string;
      assert.equal(
        await redrives.keep(redrive.redriveId, second, { leaseMs: 5_000, state: '{"ramp":2}' }, scene.at(11_001)),
        true,
      );
      assert.equal(await redrives.claim("c", 1_000, scene.at(16_000)), null);
      assert.equal(await redrives.keep(redrive.redriveId, second, { release: true }, scene.at(16_000)), true);
      assert.equal(await redrives.keep(redrive.redriveId, second, {}, scene.at(16_000)), false, "what was given up is not held");
      const third = await redrives.claim("c", 1_000, scene.at(16_001));
      assert.deepEqual([third?.redrive.state, third?.redrive.version], ['{"ramp":2}', 1]);
    }),
  );

  it(
    "a token whose lease ran out holds until another runner claims",
    play(async (scene) => {
      await scene.die(0);
      const { redrive, token } = await scene.started(0);
      assert.equal(await scene.recovery.redrives.keep(redrive.redriveId, token, { leaseMs: 1_000 }, scene.at(60_000)), true);
      assert.equal(await scene.recovery.redrives.claim("b", 1_000, scene.at(60_999)), null);
    }),
  );

  it(
    "redrives share a runner fairly: the one worked on longest ago comes first",
    play(async (scene) => {
      await scene.die(0);
      const { redrives } = scene.recovery;
      const ids: string[] = [];
      for (let i = 0; i < 3; i++) {
        const request = scene.redrive();
        await redrives.start(request, scene.at(0));
        ids.push(request.redriveId);
      }
      const claimed: string[] = [];
      for (let ms = 1; ms <= 7; ms++) {
        const claim = await redrives.claim("a", 1_000, scene.at(ms));
        claimed.push(claim?.redrive.redriveId as string);
        await redrives.keep(claim?.redrive.redriveId as string, claim?.token as string, { release: true }, scene.at(ms));
      }
      assert.deepEqual(claimed, [...ids, ...ids, ids[0]]);
    }),
  );

  it(
    "what was sent is followed after a pause, a stop, a cancel and the end; else only what runs is claimed",
    play(async (scene) => {
      const ids = await scene.die(0, 2);
      const { redrives } = scene.recovery;
      const { redrive, token } = await scene.started(1);
      const { redriveId: id } = redrive;
      const claims = async (ms: number) => {
        const claim = await redrives.claim("b", 1_000, scene.at(ms));
        if (claim) await redrives.keep(id, claim.token, { release: true }, scene.at(ms));
        return claim !== null;
      };
      const become = (status: "paused" | "running" | "stopped" | "done" | "cancelled", ms: number) =>
        redrives.change(id, { from: ["running", "paused", "stopped", "done"], status, reason: null }, [], scene.at(ms));
      await redrives.keep(id, token, { release: true }, scene.at(2));
      await become("paused", 3);
      assert.equal(await claims(4), false, "paused, and nothing is under way");
      await become("running", 5);
      const again = await redrives.claim("a", 1_000, scene.at(6));
      assert.deepEqual(await redrives.send(id, again?.token as string, [{ n: 1 }], scene.at(6)), {
        kind: "done",
        sent: 1,
        skipped: 0,
      });
      await redrives.keep(id, again?.token as string, { release: true }, scene.at(7));
      for (const [i, status] of (["paused", "stopped", "done", "cancelled"] as const).entries()) {
        await become(status, 10 + i);
        assert.equal(await claims(20 + i), true, `${status}, and one is under way`);
      }
      const { data } = await redrives.items(id, { limit: 5 });
      assert.deepEqual(
        data.map(({ state, reason }) => [state, reason]),
        [
          ["sent", null],
          ["skipped", SKIPPED.cancelled],
        ],
        "a cancel ends what waits and nothing else",
      );
      await scene.attempt(30, [ids[0] as string]);
      const last = await redrives.claim("a", 1_000, scene.at(31));
      const counts = await redrives.look(id, last?.token as string, { limit: 5, quietMs: 0 }, scene.at(31));
      assert.equal(counts?.healed, 1);
      await redrives.keep(id, last?.token as string, { release: true }, scene.at(32));
      assert.equal(await claims(33), false, "it ended and nothing is left to know");
    }),
  );

  it(
    "next gives the waiting items in order, with their messages where asked for",
    play(async (scene) => {
      const ids = await scene.die(0, 3, { tenantId: "t-1", key: null });
      const { redrive, token } = await scene.started(1);
      const { redrives } = scene.recovery;
      await redrives.send(redrive.redriveId, token, [{ n: 1 }], scene.at(2));
      const bare = await redrives.next(redrive.redriveId, 5, false);
      assert.deepEqual(
        bare.map(({ item, message }) => [item.n, item.messageId, message]),
        [
          [2, ids[1], null],
          [3, ids[2], null],
        ],
      );
      const [full] = await redrives.next(redrive.redriveId, 1, true);
      assert.deepEqual(full?.message, await seen(scene.store, ids[1] as string));
    }),
  );
});

const itemsOf = async (scene: RecoveryScene, id: string): Promise<RedriveItem[]> =>
  (await scene.recovery.redrives.items(id, { limit: 100 })).data;

const brief = (items: readonly RedriveItem[]) => items.map(({ state, reason, carrierId }) => [state, reason, carrierId]);

/** A message that carries the effect of another one. */
const carrier = (scene: RecoveryScene, fields: Partial<NewMessage> = {}): NewMessage =>
  newMessage(scene.id(), { topic: COPIES, ...fields });

describe("running: sends", () => {
  it(
    "replay: the same message, next generation, due now, with who and why; each item once",
    play(async (scene) => {
      const ids = await scene.die(0, 2, { key: null, payload: '{"a": 1.10}' });
      const { revision } = await seen(scene.store, ids[0] as string);
      const { redrive, token } = await scene.started(5);
      const send = (items: { n: number }[], ms: number) =>
        scene.recovery.redrives.send(redrive.redriveId, token, items, scene.at(ms));
      const all = [{ n: 2 }, { n: 1 }, { n: 9 }];
      assert.deepEqual(await send(all, 7), { kind: "done", sent: 2, skipped: 0 });
      assert.deepEqual(await send(all, 8), { kind: "done", sent: 0, skipped: 0 });
      for (const id of ids) {
        const message = await seen(scene.store, id);
        assert.deepEqual([message.status, message.generation, message.revision], ["pending", 1, revision + 1]);
        assert.deepEqual([message.payload, message.nextAttemptAt], ['{"a": 1.10}', scene.at(7).now]);
        const { provenance } = await scene.store.history(id);
        assert.deepEqual(provenance, [{ at: scene.at(7).now, actor: "ann", action: "replay", reason: "the receiver is back" }]);
      }
      const items = await itemsOf(scene, redrive.redriveId);
      assert.deepEqual(brief(items), [
        ["sent", null, null],
        ["sent", null, null],
      ]);
      assert.deepEqual([items[0]?.sentAt, items[0]?.endedAt], [scene.at(7).now, null]);
      assert.equal(await scene.recovery.redrives.origin(ids[0] as string), null);
      await scene.attempt(9, ids);
    }),
  );

  it(
    "a message that moved on since the list was frozen is left alone, also when it died again",
    play(async (scene) => {
      const ids = await scene.die(0, 3);
      const [again, resolved] = ids as [string, string, string];
      const { redrive, token } = await scene.started(1);
      await scene.store.intervene({ id: again, action: "replay", actor: "bo", reason: null, ...scene.at(2) });
      await scene.attempt(3, [again], { kind: "dead", blocksOrder: false, outcome: "reject", code: "x", error: null });
      await scene.store.intervene({ id: resolved, action: "resolve", actor: "bo", reason: null, ...scene.at(4) });
      const result = await scene.recovery.redrives.send(redrive.redriveId, token, [{ n: 1 }, { n: 2 }, { n: 3 }], scene.at(5));
      assert.deepEqual(result, { kind: "done", sent: 1, skipped: 2 });
      assert.deepEqual(brief(await itemsOf(scene, redrive.redriveId)), [
        ["skipped", SKIPPED.movedOn, null],
        ["skipped", SKIPPED.movedOn, null],
        ["sent", null, null],
      ]);
      const message = await seen(scene.store, again);
      assert.deepEqual([message.status, message.generation], ["dead", 1], "one replay, not two");
      assert.deepEqual((await scene.recovery.redrives.get(redrive.redriveId))?.counts, {
        ...{ selected: 3, waiting: 0, sent: 1, healed: 0, failed: 0, skipped: 2 },
      });
    }),
  );

  it(
    "two redrives over one message replay it once",
    play(async (scene) => {
      const [id] = (await scene.die(0)) as [string];
      const one = await scene.started(1);
      const two = await scene.started(2);
      const { redrives } = scene.recovery;
      await redrives.send(one.redrive.redriveId, one.token, [{ n: 1 }], scene.at(3));
      const second = await redrives.send(two.redrive.redriveId, two.token, [{ n: 1 }], scene.at(4));
      assert.deepEqual(second, { kind: "done", sent: 0, skipped: 1 });
      assert.equal((await seen(scene.store, id)).generation, 1);
    }),
  );

  it(
    "a stale token and a redrive that does not run change nothing",
    play(async (scene) => {
      const [id] = (await scene.die(0)) as [string];
      const { redrives } = scene.recovery;
      const { redrive, token } = await scene.started(0);
      await redrives.change(redrive.redriveId, { from: ["running"], status: "paused", reason: null }, [], scene.at(1));
      assert.deepEqual(await redrives.send(redrive.redriveId, token, [{ n: 1 }], scene.at(2)), { kind: "not_running" });
      await redrives.change(redrive.redriveId, { from: ["paused"], status: "running", reason: null }, [], scene.at(3));
      const taken = await redrives.claim("b", 1_000, scene.at(20_000));
      assert.deepEqual(await redrives.send(redrive.redriveId, token, [{ n: 1 }], scene.at(20_001)), { kind: "lost" });
      assert.equal(await redrives.look(redrive.redriveId, token, { limit: 5, quietMs: 0 }, scene.at(20_001)), null);
      assert.deepEqual(await redrives.send(scene.id(), token, [{ n: 1 }], scene.at(20_002)), { kind: "lost" });
      assert.equal((await seen(scene.store, id)).status, "dead");
      assert.deepEqual(brief(await itemsOf(scene, redrive.redriveId)), [["waiting", null, null]]);
      const sent = await redrives.send(redrive.redriveId, taken?.token as string, [{ n: 1 }], scene.at(20_003));
      assert.deepEqual(sent, { kind: "done", sent: 1, skipped: 0 });
    }),
  );

  it(
    "resolve: ended with the reason",
    play(async (scene) => {
      const [id] = (await scene.die(0)) as [string];
      const { redrive, token } = await scene.started(1, { mode: "resolve", reason: "not needed" });
      await scene.recovery.redrives.send(redrive.redriveId, token, [{ n: 1 }], scene.at(2));
      const message = await seen(scene.store, id);
      assert.deepEqual([message.status, message.resolution], ["dead", "resolved"]);
      assert.equal((await scene.store.history(id)).provenance[0]?.reason, "not needed");
    }),
  );

  it(
    "watch: nothing is done to it",
    play(async (scene) => {
      const [id] = (await scene.die(0)) as [string];
      const before = await seen(scene.store, id);
      const { redrive, token } = await scene.started(1, { mode: "watch" });
      assert.deepEqual(await scene.recovery.redrives.send(redrive.redriveId, token, [{ n: 1 }], scene.at(2)), {
        ...{ kind: "done", sent: 1, skipped: 0 },
      });
      assert.deepEqual(await seen(scene.store, id), before);
    }),
  );
});

describe("running: carriers", () => {
  it(
    "new_key: a new message under a new key, the old one resolved; it says what it was made from",
    play(async (scene) => {
      const [id] = (await scene.die(0, 1, { key: "k-1" })) as [string];
      const { redrive, token } = await scene.started(1, { mode: "new_key" });
      const message = newMessage(scene.id(), { key: "k-1~1", payload: '{"same":true}' });
      await scene.recovery.redrives.send(redrive.redriveId, token, [{ n: 1, carrier: message }], scene.at(2));
      assert.equal((await seen(scene.store, id)).resolution, "resolved");
      assert.deepEqual(
        [(await seen(scene.store, message.id)).status, (await seen(scene.store, message.id)).key],
        ["pending", "k-1~1"],
      );
      assert.deepEqual(brief(await itemsOf(scene, redrive.redriveId)), [["sent", null, message.id]]);
      const origin = { replayOf: id, redriveId: redrive.redriveId, edited: false };
      assert.deepEqual(await scene.recovery.redrives.origin(message.id), origin);
    }),
  );

  it(
    "copy: another message carries the effect, and the original lies open until that is delivered",
    play(async (scene) => {
      const [id] = (await scene.die(0)) as [string];
      const before = await seen(scene.store, id);
      const { redrive, token } = await scene.started(1, { mode: "copy" });
      const message = carrier(scene);
      await scene.recovery.redrives.send(redrive.redriveId, token, [{ n: 1, carrier: message }], scene.at(2));
      const original = await seen(scene.store, id);
      assert.deepEqual(original, before);
      assert.equal((await seen(scene.store, message.id)).topic, COPIES);
      assert.equal((await scene.recovery.redrives.origin(message.id))?.replayOf, id);
    }),
  );

  it(
    "a carrier whose key is there is that message; with another payload its item is skipped",
    play(async (scene) => {
      const ids = await scene.die(0, 3);
      const payload = '{"same":true}';
      const [there] = (await scene.accept(1, { topic: COPIES, key: "same", payload })) as [string];
      await scene.accept(1, { topic: COPIES, key: "other", payload: '{"other":true}' });
      const { redrive, token } = await scene.started(2, { mode: "copy" });
      const fresh = carrier(scene, { key: "fresh", payload });
      const items = [
        { n: 1, carrier: carrier(scene, { key: "same", payload }) },
        { n: 2, carrier: carrier(scene, { key: "other", payload }) },
        { n: 3, carrier: fresh },
      ];
      const result = await scene.recovery.redrives.send(redrive.redriveId, token, items, scene.at(3));
      assert.deepEqual(result, { kind: "done", sent: 2, skipped: 1 });
      assert.deepEqual(brief(await itemsOf(scene, redrive.redriveId)), [
        ["sent", null, there],
        ["skipped", SKIPPED.keyConflict, null],
        ["sent", null, fresh.id],
      ]);
      for (const id of ids) assert.equal((await seen(scene.store, id)).resolution, "open");
      assert.equal(await scene.recovery.redrives.origin(there), null, "it was there before, and stands for itself");
    }),
  );

  it(
    "copy: an earlier copy that died under the same key is tried again; one that was ended by a person is not",
    play(async (scene) => {
      const ids = await scene.die(0, 2);
      const payload = '{"same":true}';
      const [dead] = (await scene.die(1, 1, { topic: COPIES, key: "dead", payload })) as [string];
      const [ended] = (await scene.die(1, 1, { topic: COPIES, key: "ended", payload })) as [string];
      await scene.store.intervene({ id: ended, action: "discard", actor: "ops", reason: "no", ...scene.at(2) });
      const { redrive, token } = await scene.started(3, { mode: "copy", select: { ids } });
      const items = ["dead", "ended"].map((key, i) => ({ n: i + 1, carrier: carrier(scene, { key, payload }) }));
      assert.deepEqual(await scene.recovery.redrives.send(redrive.redriveId, token, items, scene.at(4)), {
        kind: "done",
        sent: 2,
        skipped: 0,
      });
      const again = await seen(scene.store, dead);
      assert.deepEqual([again.status, again.generation], ["pending", 1]);
      assert.equal((await scene.store.history(dead)).provenance.at(-1)?.action, "replay");
      assert.equal((await seen(scene.store, ended)).resolution, "discarded");
      await scene.attempt(5, [dead]);
      const how = { limit: 5, quietMs: 0 };
      assert.equal((await scene.recovery.redrives.look(redrive.redriveId, token, how, scene.at(6)))?.healed, 1);
      const first = (await itemsOf(scene, redrive.redriveId))[0] as RedriveItem;
      assert.deepEqual([first.state, first.carrierId], ["healed", dead]);
      assert.equal((await seen(scene.store, first.messageId)).resolution, "resolved");
    }),
  );

  it(
    "copy: an earlier copy that was tried again often enough is skipped, and stays as it is",
    play(async (scene) => {
      const ids = await scene.die(0);
      const payload = '{"same":true}';
      const [dead] = (await scene.die(1, 1, { topic: COPIES, key: "dead", payload })) as [string];
      await scene.store.intervene({ id: dead, action: "replay", actor: "ops", reason: null, ...scene.at(2) });
      await scene.attempt(3, [dead], died());
      const { redrive, token } = await scene.started(4, { mode: "copy", select: { ids, copyGenerationMax: 1 } });
      const items = [{ n: 1, carrier: carrier(scene, { key: "dead", payload }) }];
      const sent = await scene.recovery.redrives.send(redrive.redriveId, token, items, scene.at(5));
      assert.deepEqual(sent, { kind: "done", sent: 0, skipped: 1 });
      assert.deepEqual(brief(await itemsOf(scene, redrive.redriveId)), [["skipped", SKIPPED.generationCap, null]]);
      assert.deepEqual([(await seen(scene.store, dead)).status, (await seen(scene.store, dead)).generation], ["dead", 1]);
    }),
  );

  it(
    "a new key that belongs to another message leaves the original open",
    play(async (scene) => {
      const [id] = (await scene.die(0, 1, { key: "k-1" })) as [string];
      await scene.accept(1, { key: "k-1~1", payload: '{"other":true}' });
      const { redrive, token } = await scene.started(2, { mode: "new_key" });
      const message = newMessage(scene.id(), { key: "k-1~1" });
      const sent = await scene.recovery.redrives.send(redrive.redriveId, token, [{ n: 1, carrier: message }], scene.at(3));
      assert.deepEqual(sent, { kind: "done", sent: 0, skipped: 1 });
      assert.equal((await seen(scene.store, id)).resolution, "open");
      assert.equal(await scene.recovery.redrives.origin(message.id), null);
    }),
  );

  it(
    "a missing carrier or an unknown topic is an error, and nothing is written",
    play(async (scene) => {
      await scene.die(0, 2);
      const { redrive, token } = await scene.started(1, { mode: "new_key" });
      const { redrives } = scene.recovery;
      const one = { n: 1, carrier: newMessage(scene.id()) };
      await refused("invariant_violated", () => redrives.send(redrive.redriveId, token, [one, { n: 2 }], scene.at(2)));
      const lost = { n: 2, carrier: newMessage(scene.id(), { topic: "no/such" }) };
      await refused("unknown_topic", () => redrives.send(redrive.redriveId, token, [one, lost], scene.at(3)));
      assert.equal(await scene.store.get(one.carrier.id), null);
      assert.deepEqual((await redrives.get(redrive.redriveId))?.counts.waiting, 2);
      const { data } = await scene.store.list({ status: "dead", resolution: "open", limit: 5 });
      assert.equal(data.length, 2);
    }),
  );
});
