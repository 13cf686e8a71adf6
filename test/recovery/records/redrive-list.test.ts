/**
 * Redrives as records: what a select means, the frozen list, starting once, and what people change.
 */
import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { Ingested } from "../../../src/recovery/failures/ingest.ts";
import { type Redrive, type RedriveSelect, SKIPPED } from "../../../src/recovery/redrive/redrive.ts";
import { hashOf, OTHER, PLAIN, refused, seen } from "../../../src/testing/store-conformance/fixtures.ts";
import { allPages, died, play, type RecoveryScene } from "./scene.ts";

const ANY = { limit: 100, generationMax: 10 };

/** The messages a select lists, in its order. */
async function listed(scene: RecoveryScene, select: Partial<RedriveSelect>): Promise<string[]> {
  const started = await scene.recovery.redrives.start(scene.redrive({ status: "planned", select }), scene.at(50));
  const { redriveId: id } = (started as { redrive: Redrive }).redrive;
  const { data } = await scene.recovery.redrives.items(id, { limit: 100 });
  const preview = await scene.recovery.redrives.preview({ ...ANY, ...select });
  assert.equal(preview.messages, data.length, "what is shown is what is listed");
  return data.map(({ messageId }) => messageId);
}

describe("redrives: selections", () => {
  it(
    "a select lists the open dead letters that fit all it names, oldest death first",
    play(async (scene) => {
      const [a, b, c, d] = (await scene.accept(0, { tenantId: "t-1" }, {}, { topic: OTHER }, {})) as [
        string,
        string,
        string,
        string,
      ];
      await scene.attempt(1, [c], died("http_422"));
      await scene.attempt(2, [b], died());
      await scene.attempt(3, [a], died("http_422"));
      await scene.attempt(4, [d], died());
      await scene.store.intervene({ id: d, action: "resolve", actor: "ann", reason: null, ...scene.at(5) });
      await scene.accept(6);
      assert.deepEqual(await listed(scene, {}), [c, b, a]);
      assert.deepEqual(await listed(scene, { limit: 2 }), [c, b]);
      assert.deepEqual(await listed(scene, { topic: PLAIN }), [b, a]);
      assert.deepEqual(await listed(scene, { tenantId: "t-1" }), [a]);
      assert.deepEqual(await listed(scene, { errorCode: "http_422" }), [c, a]);
      assert.deepEqual(await listed(scene, { ids: [a, d, c, scene.id(), a] }), [c, a]);
      assert.deepEqual(await listed(scene, { ids: [a, c], topic: PLAIN }), [a]);
      assert.deepEqual(await listed(scene, { ids: [] }), []);
      assert.deepEqual(await listed(scene, { groupId: 987_654 }), []);
    }),
  );

  it(
    "of ids that were given only their number is kept beside the list",
    play(async (scene) => {
      const [a, b] = (await scene.die(0, 2)) as [string, string];
      const { redrive } = await scene.started(1, { select: { ids: [a, b, scene.id()], topic: PLAIN } });
      const kept = { limit: 1_000, generationMax: 10, topic: PLAIN, idsGiven: 3 };
      assert.deepEqual(redrive.select, kept);
      assert.deepEqual((await scene.recovery.redrives.get(redrive.redriveId))?.select, kept);
      assert.equal(redrive.counts.selected, 2);
    }),
  );

  it(
    "by group: those that are open in it by their present death, merged ones included",
    play(async (scene) => {
      const ids = await scene.die(0, 3);
      const [x, y, z] = ids as [string, string, string];
      const [one] = (await scene.ingestDeaths(1, "slow", [x, y])) as [Ingested];
      const [two] = (await scene.ingestDeaths(2, "refused", [z])) as [Ingested];
      assert.deepEqual(await listed(scene, { groupId: one.groupId }), [x, y]);
      await scene.store.intervene({ id: x, action: "replay", actor: "ann", reason: null, ...scene.at(60) });
      await scene.attempt(61, [x], died());
      assert.deepEqual(await listed(scene, { groupId: one.groupId }), [y], "what it died of this time is not known yet");
      const all = await scene.started(62);
      const { data: items } = await scene.recovery.redrives.items(all.redrive.redriveId, { limit: 5 });
      assert.equal(items.find(({ messageId }) => messageId === x)?.groupId, null);
      await scene.ingestDeaths(62, "refused", [x]);
      assert.deepEqual(await listed(scene, { groupId: two.groupId }), [z, x]);
      await scene.recovery.merge({ from: two.groupId, into: one.groupId, provenance: [], ...scene.at(63) });
      for (const { groupId } of [one, two]) assert.deepEqual(await listed(scene, { groupId }), [y, z, x]);
    }),
  );

  it(
    "a preview says how many, of which topics and tenants, and since when, and changes nothing",
    play(async (scene) => {
      await scene.die(3, 2, { topic: OTHER, tenantId: "t-1" });
      await scene.die(4, 2);
      await scene.die(5, 1);
      const { redrives } = scene.recovery;
      const { seen: mark, ...all } = await redrives.preview(ANY);
      assert.ok(mark.length > 0);
      assert.deepEqual(all, {
        messages: 5,
        overGeneration: 0,
        leftOut: {},
        topics: [
          { topic: PLAIN, messages: 3 },
          { topic: OTHER, messages: 2 },
        ],
        tenants: 2,
        oldestAt: scene.at(3).now,
      });
      const two = await redrives.preview({ ...ANY, limit: 2, generationMax: 0 });
      assert.deepEqual([two.messages, two.overGeneration, two.topics.length], [2, 2, 1]);
      const none = { messages: 0, overGeneration: 0, leftOut: {}, topics: [], tenants: 0, oldestAt: null };
      const { seen: _, ...nobody } = await redrives.preview({ ...ANY, tenantId: "nobody" });
      assert.deepEqual(nobody, none);
      assert.deepEqual((await redrives.list({ limit: 5 })).data, []);
    }),
  );
});

describe("redrives: starts", () => {
  it(
    "a start freezes the list: what dies later is not in it, and each item says how its message stood",
    play(async (scene) => {
      const ids = await scene.die(0, 2);
      const [{ groupId }] = (await scene.ingestDeaths(1, "slow", [ids[0] as string])) as [Ingested];
      const line = scene.line({ eventType: "redrive_started" });
      const request = scene.redrive({ idempotencyKey: "press-1" });
      const started = await scene.recovery.redrives.start(
        { ...request, provenance: [{ ...line, redriveId: request.redriveId }] },
        scene.at(5),
      );
      await scene.die(6);
      const { requestHash: _, provenance: __, ...fields } = request;
      const counts = { selected: 2, waiting: 2, sent: 0, healed: 0, failed: 0, skipped: 0 };
      const state = { statusReason: null, version: 1, state: null, runner: null, createdAt: scene.at(5).now };
      const expected = { ...fields, ...state, counts, startedAt: scene.at(5).now, endedAt: null };
      assert.deepEqual(started, { kind: "started", redrive: expected });
      assert.deepEqual(await scene.recovery.redrives.get(request.redriveId), expected);
      assert.deepEqual(await scene.recovery.redrives.find("press-1"), expected);
      assert.equal(await scene.recovery.redrives.find("press-2"), null);
      assert.equal(await scene.recovery.redrives.get(scene.id()), null);
      const { data } = await scene.recovery.redrives.items(request.redriveId, { limit: 10 });
      const { revision } = await seen(scene.store, ids[0] as string);
      const waiting = { generation: 0, revision, state: "waiting", reason: null, carrierId: null, sentAt: null, endedAt: null };
      assert.deepEqual(data, [
        { n: 1, messageId: ids[0], groupId, ...waiting },
        { n: 2, messageId: ids[1], groupId: null, ...waiting },
      ]);
      const { data: lines } = await scene.recovery.provenance({ redriveId: request.redriveId }, { limit: 5 });
      assert.equal(lines.length, 1);
    }),
  );

  it(
    "fault 42: pressing twice is one redrive; the key with another request is a conflict",
    play(async (scene) => {
      await scene.die(0, 2);
      const request = scene.redrive({ idempotencyKey: "press-1" });
      const { redrives } = scene.recovery;
      const first = (await redrives.start(request, scene.at(1))) as { redrive: Redrive };
      await scene.die(2);
      const again = await redrives.start({ ...request, redriveId: scene.id() }, scene.at(3));
      assert.deepEqual(again, { kind: "same", redrive: first.redrive });
      assert.deepEqual(
        await redrives.start({ ...request, idempotencyKey: null }, scene.at(3)),
        again,
        "the same id is the same one",
      );
      const other = { ...scene.redrive({ idempotencyKey: "press-1" }), requestHash: hashOf("other") };
      assert.deepEqual(await redrives.start(other, scene.at(4)), { kind: "conflict", redrive: first.redrive });
      assert.equal((await redrives.list({ limit: 5 })).data.length, 1);
      assert.equal(await redrives.get(other.redriveId), null);
    }),
  );

  it(
    "messages that were replayed too often are listed as skipped",
    play(async (scene) => {
      const ids = await scene.die(0, 2);
      const [id] = ids as [string];
      await scene.store.intervene({ id, action: "replay", actor: "ann", reason: null, ...scene.at(1) });
      await scene.attempt(2, [id], died());
      const { redrive } = await scene.started(3, { select: { generationMax: 1 } });
      assert.deepEqual(redrive.counts, { selected: 2, waiting: 1, sent: 0, healed: 0, failed: 0, skipped: 1 });
      const { data } = await scene.recovery.redrives.items(redrive.redriveId, { limit: 5, state: "skipped" });
      assert.deepEqual(
        data.map(({ messageId, reason, generation, revision }) => [messageId, reason, generation, revision]),
        [[id, SKIPPED.generationCap, 1, (await seen(scene.store, id)).revision]],
      );
    }),
  );

  it(
    "a redrive is handed an execution only under its fence, and carries it without a lease",
    play(async (scene) => {
      const { candidateId, version } = await scene.open("slow");
      const { redrives } = scene.recovery;
      const request = (executionId: string) => scene.redrive({ candidateId, executionId });
      assert.deepEqual(await redrives.start(request("e-1"), scene.at(1)), { kind: "lost" }, "nothing is executing");
      const claim = { decision: "approved", executionStatus: "executing", executionId: "e-1", leaseMs: 1_000 } as const;
      await scene.done({ candidateId, version, patch: claim }, 2);
      assert.deepEqual(await redrives.start(request("e-2"), scene.at(3)), { kind: "lost" });
      assert.deepEqual((await redrives.list({ limit: 5 })).data, []);
      const mine = { ...request("e-1"), requestKey: "execution-e-1" };
      assert.equal((await redrives.start(mine, scene.at(4))).kind, "started");
      const candidate = await scene.recovery.candidate(candidateId);
      assert.deepEqual([candidate?.redriveId, candidate?.leaseUntil, candidate?.version], [mine.redriveId, null, version + 2]);
      assert.deepEqual(await scene.recovery.expiredExecutions(5, scene.at(9_999)), []);
      await scene.done({ candidateId, patch: { executionStatus: "succeeded" } }, 5);
      assert.equal((await redrives.start(mine, scene.at(6))).kind, "same", "the same one, also after its execution");
      assert.equal((await redrives.start(request("e-1"), scene.at(7))).kind, "lost");
    }),
  );
});

describe("redrives: changes", () => {
  it(
    "redrives are listed newest first, and items in their order, in pages",
    play(async (scene) => {
      const ids = await scene.die(0, 5);
      const { redrives } = scene.recovery;
      const made: string[] = [];
      for (let i = 0; i < 5; i++) {
        const request = scene.redrive({ status: i === 2 ? "planned" : "running" });
        await redrives.start(request, scene.at(1));
        made.unshift(request.redriveId);
      }
      const seen = await allPages((cursor) => redrives.list({ limit: 2, cursor }));
      assert.deepEqual(
        seen.map(({ redriveId }) => redriveId),
        made,
      );
      const planned = await redrives.list({ status: "planned", limit: 5 });
      assert.deepEqual(
        planned.data.map(({ redriveId }) => redriveId),
        [made[2]],
      );
      const items = await allPages((cursor) => redrives.items(made[0] as string, { limit: 2, cursor }));
      assert.deepEqual(
        items.map(({ messageId }) => messageId),
        ids,
      );
      await refused("invalid_request", () => redrives.list({ limit: 2, cursor: "no" }));
      assert.deepEqual((await redrives.items(scene.id(), { limit: 5 })).data, []);
    }),
  );

  it(
    "people change a redrive only from where it stands, and only the version they saw",
    play(async (scene) => {
      await scene.die(0);
      const { redrives } = scene.recovery;
      const { redriveId: id } = (
        (await redrives.start(scene.redrive({ status: "planned" }), scene.at(1))) as { redrive: Redrive }
      ).redrive;
      const change = async (from: Redrive["status"], status: Redrive["status"], ms: number, version?: number) => {
        const lines = [scene.line({ redriveId: id, eventType: status })];
        const result = await redrives.change(id, { from: [from], status, reason: `now ${status}`, version }, lines, scene.at(ms));
        return [result.kind, result.redrive.status, result.redrive.version];
      };
      assert.deepEqual(await change("paused", "running", 2), ["wrong_state", "planned", 1]);
      assert.deepEqual(await change("planned", "running", 3, 2), ["version_conflict", "planned", 1]);
      assert.deepEqual(await change("planned", "running", 3, 1), ["done", "running", 2]);
      assert.deepEqual(await change("running", "paused", 4), ["done", "paused", 3]);
      assert.deepEqual(await change("paused", "running", 5), ["done", "running", 4]);
      const running = await redrives.get(id);
      assert.deepEqual([running?.startedAt, running?.endedAt, running?.statusReason], [scene.at(3).now, null, "now running"]);
      assert.deepEqual(await change("running", "cancelled", 6), ["done", "cancelled", 5]);
      const ended = await redrives.get(id);
      assert.deepEqual(ended?.endedAt, scene.at(6).now);
      assert.deepEqual(ended?.counts, { selected: 1, waiting: 0, sent: 0, healed: 0, failed: 0, skipped: 1 });
      const { data } = await redrives.items(id, { limit: 5 });
      assert.deepEqual([data[0]?.reason, data[0]?.endedAt], [SKIPPED.cancelled, scene.at(6).now]);
      const pause = { from: ["running"], status: "paused", reason: null } as const;
      await refused("redrive_not_found", () => redrives.change(scene.id(), pause, [], scene.at(7)));
      const { data: lines } = await scene.recovery.provenance({ redriveId: id }, { limit: 9 });
      assert.deepEqual(
        lines.map(({ eventType }) => eventType),
        ["cancelled", "running", "paused", "running"],
        "a refused change leaves no line",
      );
    }),
  );
});
