/**
 * The record, what was learned, documents and the numbers of all of it.
 */
import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { evidenceOf } from "../../../src/recovery/confidence/levels.ts";
import type { Observation } from "../../../src/recovery/confidence/observation.ts";
import { HALF_LIFE_MS } from "../../../src/recovery/confidence/outcome-counts.ts";
import type { DocumentWrite } from "../../../src/recovery/documents.ts";
import type { Ingested } from "../../../src/recovery/failures/ingest.ts";
import type { NewProvenance } from "../../../src/recovery/provenance.ts";
import { refused } from "../../../src/testing/store-conformance/fixtures.ts";
import { identity, play, type RecoveryScene } from "./scene.ts";

describe("records: provenance", () => {
  it(
    "a line gives back every field, newest first, by group, candidate and redrive",
    play(async (scene) => {
      const { candidateId, groupId } = await scene.open("slow");
      const redriveId = scene.id();
      const full: NewProvenance = {
        ...{ groupId, candidateId, redriveId, eventType: "action_selected", actor: "engine", actorType: "agent" },
        ...{ reason: "why: \u2028 😀", ruleId: "timeout_retry", action: "retry_exponential" },
        ...{ confidenceBefore: 0.1, confidenceAfter: 0.85, durationMs: 12, details: '{"a": 1.10}' },
      };
      await scene.recovery.note([full, scene.line({ groupId, eventType: "second" })], scene.at(5));
      await scene.recovery.note([scene.line({ eventType: "of nothing" })], scene.at(6));
      const read = async (of: Parameters<typeof scene.recovery.provenance>[0]) =>
        (await scene.recovery.provenance(of, { limit: 10 })).data;
      const lines = await read({ groupId });
      assert.deepEqual(
        lines.map(({ eventType }) => eventType),
        ["second", "action_selected", "created"],
      );
      const { provenanceId, ...rest } = lines[1] as (typeof lines)[number];
      assert.deepEqual(rest, { ...full, at: scene.at(5).now });
      assert.ok(Number.isSafeInteger(provenanceId));
      assert.deepEqual(await read({ redriveId }), [lines[1]]);
      assert.equal((await read({ candidateId })).length, 2);
      assert.equal((await read({ candidateId, redriveId })).length, 1);
      assert.equal((await read({})).length, 4);
    }),
  );

  it(
    "DR-40: lines stay as they were written, whatever happens to what they tell of",
    play(async (scene) => {
      const [one, two] = [await scene.open("slow"), await scene.open("refused")];
      const { candidateId, groupId } = one;
      await scene.done({ candidateId, patch: { note: "x" }, provenance: [scene.line({ candidateId, groupId })] }, 1);
      const before = (await scene.recovery.provenance({ groupId }, { limit: 10 })).data;
      await scene.done({ candidateId, patch: { decision: "rejected" }, provenance: [] }, 2);
      await scene.recovery.merge({ from: groupId, into: two.groupId, provenance: [], ...scene.at(3) });
      assert.deepEqual((await scene.recovery.provenance({ groupId }, { limit: 10 })).data, before);
    }),
  );

  it(
    "pages of the record hold still while it grows",
    play(async (scene) => {
      const { groupId } = await scene.open("slow");
      const events = ["a", "b", "c", "d"];
      for (const event of events) await scene.recovery.note([scene.line({ groupId, eventType: event })], scene.at(1));
      const first = await scene.recovery.provenance({ groupId }, { limit: 2 });
      await scene.recovery.note([scene.line({ groupId, eventType: "late" })], scene.at(2));
      const rest = await scene.recovery.provenance({ groupId }, { limit: 9, cursor: first.nextCursor as string });
      assert.deepEqual(
        [...first.data, ...rest.data].map(({ eventType }) => eventType),
        ["d", "c", "b", "a", "created"],
      );
      assert.equal(rest.nextCursor, null);
      await refused("invalid_request", () => scene.recovery.provenance({ groupId }, { limit: 2, cursor: "no" }));
    }),
  );
});

/** `[group, action, healed, failed, ms since the scene's start]`. */
function brief(scene: RecoveryScene, observations: readonly Observation[]) {
  const start = scene.at(0).now.getTime();
  return observations.map(({ groupId, action, healed, failed, at }) => [groupId, action, healed, failed, at - start]);
}

describe("records: outcomes", () => {
  it(
    "what executions showed is read the newest first, a group's own and the others'; what was there fades",
    play(async (scene) => {
      const [{ groupId: a }] = (await scene.ingest(0, scene.failure("slow"))) as [Ingested];
      const [{ groupId: b }] = (await scene.ingest(0, scene.failure("refused"))) as [Ingested];
      const learn = (ms: number, groupId: number, healed: number, failed: number) =>
        scene.recovery.learn([{ groupId, action: "retry", healed, failed }], scene.at(ms));
      await learn(0, a, 4, 0);
      await learn(1, b, 0, 2);
      await learn(HALF_LIFE_MS, a, 1, 1);
      const observations = await scene.recovery.observations(a);
      assert.deepEqual(brief(scene, observations), [
        [a, "retry", 1, 1, HALF_LIFE_MS],
        [b, "retry", 0, 2, 1],
        [a, "retry", 4, 0, 0],
      ]);
      const at = scene.at(HALF_LIFE_MS).now.getTime();
      const [own] = evidenceOf(observations, { groupId: a, cause: null }, at);
      assert.deepEqual(
        own?.own,
        { successes: 1, failures: 0.5, at },
        "each execution weighs 1 and, after a half-life, half of it",
      );
      assert.deepEqual(brief(scene, await scene.recovery.observations(b)), brief(scene, observations));
      const [all] = (await scene.recovery.stats([])).outcomes;
      const round = (n = 0): number => Math.round(n * 1e6) / 1e6;
      assert.deepEqual([all?.action, round(all?.successes), round(all?.failures)], ["retry", 1, 1]);
    }),
  );

  it(
    "one execution is one observation, which is revised while it goes on",
    play(async (scene) => {
      const { groupId } = await scene.open("slow");
      const redriveId = scene.id();
      const learn = (ms: number, healed: number, failed: number) =>
        scene.recovery.learn([{ groupId, action: "retry", redriveId, healed, failed }], scene.at(ms));
      await learn(1, 300, 0);
      await learn(2, 0, 100);
      assert.deepEqual(brief(scene, await scene.recovery.observations(groupId)), [[groupId, "retry", 300, 100, 2]]);
      assert.deepEqual((await scene.recovery.stats([])).outcomes, [{ action: "retry", successes: 0.75, failures: 0.25 }]);
    }),
  );

  it(
    "a clock that runs behind makes nothing grow; nothing learned is nothing kept",
    play(async (scene) => {
      const { groupId } = await scene.open("slow");
      const learn = (ms: number, healed: number, failed = 0) =>
        scene.recovery.learn([{ groupId, action: "retry", healed, failed }], scene.at(ms));
      await learn(2_000, 2, 2);
      await learn(1_000, 1, 3);
      await learn(9_000, 0);
      await scene.recovery.learn([{ groupId: 987_654, action: "retry", healed: 5, failed: 0 }], scene.at(2_000));
      const observations = await scene.recovery.observations(groupId);
      assert.deepEqual(brief(scene, observations), [
        [groupId, "retry", 2, 2, 2_000],
        [groupId, "retry", 1, 3, 1_000],
      ]);
      const [own] = evidenceOf(observations, { groupId, cause: null }, scene.at(0).now.getTime());
      assert.ok((own?.own?.successes as number) + (own?.own?.failures as number) <= 2);
      assert.deepEqual(brief(scene, await scene.recovery.observations(987_654)), brief(scene, observations));
    }),
  );

  it(
    "a merged group brings what it had learned; what is learned for it later is learned where it went",
    play(async (scene) => {
      const far = scene.failure("slow", { group: identity("slow", { topic: "other/plain" }) });
      const [one] = (await scene.ingest(0, far)) as [Ingested];
      const two = await scene.open("refused");
      const learn = (groupId: number, action: string, ms: number, healed: number, failed: number) =>
        scene.recovery.learn([{ groupId, action, healed, failed }], scene.at(ms));
      await learn(one.groupId, "retry", 0, 4, 0);
      await learn(two.groupId, "retry", 1_000, 0, 3);
      await learn(one.groupId, "another", 1_001, 1, 0);
      await scene.recovery.merge({ from: one.groupId, into: two.groupId, provenance: [], ...scene.at(1_001) });
      await learn(one.groupId, "retry", 1_002, 1, 0);
      for (const { groupId } of [one, two]) {
        assert.deepEqual(brief(scene, await scene.recovery.observations(groupId)), [
          [two.groupId, "retry", 1, 0, 1_002],
          [two.groupId, "another", 1, 0, 1_001],
          [two.groupId, "retry", 0, 3, 1_000],
          [two.groupId, "retry", 4, 0, 0],
        ]);
      }
    }),
  );
});

const doc = (text: string | null, version: number, fields: Partial<DocumentWrite> = {}): DocumentWrite => ({
  ...{ kind: "rule", id: "r-1", text, version, actor: "ann" },
  ...fields,
});

describe("records: documents", () => {
  it(
    "a document is written from the version that was read; every version is kept",
    play(async (scene) => {
      const { documents } = scene.recovery;
      const text = '{ "a":1.10,"b":"😀\\u0000" }';
      assert.equal(await documents.get("rule", "r-1"), null);
      assert.equal(await documents.revision("rule"), 0);
      assert.deepEqual(await documents.put(doc(text, 1)), { kind: "version_conflict", version: 0 });
      assert.deepEqual(await documents.put(doc(text, 0), scene.at(1)), { kind: "done", version: 1 });
      assert.deepEqual(await documents.put(doc("{}", 0), scene.at(2)), { kind: "version_conflict", version: 1 });
      const first = { id: "r-1", version: 1, text, actor: "ann", at: scene.at(1).now };
      assert.deepEqual(await documents.get("rule", "r-1"), first);
      assert.deepEqual(await documents.put(doc("{}", 1, { actor: "bo" }), scene.at(3)), { kind: "done", version: 2 });
      const second = { id: "r-1", version: 2, text: "{}", actor: "bo", at: scene.at(3).now };
      assert.deepEqual(await documents.history("rule", "r-1", 10), [second, first]);
      assert.deepEqual(await documents.history("rule", "r-1", 1), [second]);
      assert.equal(await documents.get("action", "r-1"), null, "kinds are apart");
    }),
  );

  it(
    "what a document's write puts on record is there with it, and not without it",
    play(async (scene) => {
      const { documents } = scene.recovery;
      const provenance = [scene.line({ eventType: "rule_edited", ruleId: "r-1" })];
      await documents.put(doc("{}", 7, { provenance }), scene.at(1));
      assert.deepEqual((await scene.recovery.provenance({}, { limit: 5 })).data, []);
      await documents.put(doc("{}", 0, { provenance }), scene.at(2));
      const { data } = await scene.recovery.provenance({}, { limit: 5 });
      assert.deepEqual(
        data.map(({ eventType, ruleId, at }) => [eventType, ruleId, at]),
        [["rule_edited", "r-1", scene.at(2).now]],
      );
    }),
  );

  it(
    "a deleted document is gone, its versions stay, and its successor counts on",
    play(async (scene) => {
      const { documents } = scene.recovery;
      await documents.put(doc("{}", 0), scene.at(1));
      assert.equal((await documents.put(doc(null, 0), scene.at(2))).kind, "version_conflict");
      assert.deepEqual(await documents.put(doc(null, 1, { actor: "bo" }), scene.at(2)), { kind: "done", version: 2 });
      assert.equal(await documents.get("rule", "r-1"), null);
      assert.deepEqual(await documents.list("rule"), []);
      const revision = await documents.revision("rule");
      assert.deepEqual(await documents.put(doc(null, 0), scene.at(3)), { kind: "done", version: 0 });
      assert.equal(await documents.revision("rule"), revision, "deleting what is not there changes nothing");
      assert.deepEqual(await documents.put(doc("[]", 2), scene.at(3)), { kind: "version_conflict", version: 0 });
      assert.deepEqual(await documents.put(doc("[]", 0), scene.at(3)), { kind: "done", version: 3 });
      const versions = await documents.history("rule", "r-1", 10);
      assert.deepEqual(
        versions.map(({ version, text, actor }) => [version, text, actor]),
        [
          [3, "[]", "ann"],
          [2, "", "bo"],
          [1, "{}", "ann"],
        ],
      );
    }),
  );

  it(
    "documents are listed by id, and each write of a kind raises that kind's revision",
    play(async (scene) => {
      const { documents } = scene.recovery;
      for (const id of ["b", "a", "c"]) await documents.put(doc(`"${id}"`, 0, { id }), scene.at(1));
      const before = await documents.revision("rule");
      await documents.put(doc("1", 1, { id: "b" }), scene.at(2));
      await documents.put(doc("1", 0, { id: "b" }), scene.at(2));
      assert.ok((await documents.revision("rule")) > before);
      assert.equal(await documents.revision("action"), 0);
      assert.deepEqual(
        (await documents.list("rule")).map(({ id, text }) => [id, text]),
        [
          ["a", '"a"'],
          ["b", "1"],
          ["c", '"c"'],
        ],
      );
    }),
  );

  it(
    "templates are compared and set, and keep no versions",
    play(async (scene) => {
      const { documents } = scene.recovery;
      const write = (version: number, text: string) => documents.put(doc(text, version, { kind: "templates", id: "scope" }));
      const large = JSON.stringify({ rows: "x".repeat(300_000) });
      assert.deepEqual(await write(0, large), { kind: "done", version: 1 });
      assert.deepEqual(await write(0, "{}"), { kind: "version_conflict", version: 1 });
      assert.deepEqual(await write(1, "{}"), { kind: "done", version: 2 });
      assert.deepEqual(await documents.history("templates", "scope", 10), []);
      assert.equal(await documents.revision("templates"), 2);
    }),
  );
});

describe("records: numbers", () => {
  it(
    "the numbers count groups, failures and candidates as they stand",
    play(async (scene) => {
      const ids = await scene.die(0, 2);
      await scene.ingestDeaths(1, "slow", [ids[0] as string]);
      const { candidateId } = await scene.open("refused", 2);
      await scene.done({ candidateId, patch: { decision: "rejected", evaluationStatus: "evaluating" } }, 3);
      await scene.ingest(4, scene.failure("refused"));
      assert.deepEqual(await scene.recovery.stats([]), {
        groups: 2,
        openGroups: 1,
        occurrences: 3,
        decisions: { pending: 2, approved: 0, rejected: 1 },
        evaluations: { unevaluated: 2, evaluating: 1, evaluated: 0, failed: 0 },
        executions: { pending: 3, executing: 0, succeeded: 0, failed: 0, rolled_back: 0, skipped: 0, unknown: 0 },
        outcomes: [],
        uningested: 1,
      });
    }),
  );
});
