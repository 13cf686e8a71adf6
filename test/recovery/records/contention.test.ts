/**
 * Many at once, on two instances where the engine has them: nothing is lost, nothing is done twice.
 */
import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { Candidate } from "../../../src/recovery/candidates/candidate.ts";
import type { Ingested } from "../../../src/recovery/failures/ingest.ts";
import type { Redrive } from "../../../src/recovery/redrive/redrive.ts";
import { newMessage, seen, shuffled } from "../../../src/testing/store-conformance/fixtures.ts";
import { identity, play } from "./scene.ts";

/** How often each text comes. */
function tally(texts: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const text of texts) counts[text] = (counts[text] ?? 0) + 1;
  return counts;
}

describe("contention: ingest", () => {
  it(
    "REC-44: 100 ingests of one failure at once count 100, in one group with one candidate",
    play(async (scene) => {
      const engines = await scene.instances(100);
      const all = engines.map((engine, i) => engine.ingest([scene.failure("slow")], scene.settings(i)));
      const answers = (await Promise.all(all)).map(([answer]) => answer as Ingested);
      assert.deepEqual(tally(answers.map(({ kind }) => kind)), { accepted: 100 });
      assert.equal(new Set(answers.map(({ groupId, candidateId }) => `${groupId}/${candidateId}`)).size, 1);
      assert.equal(answers.filter(({ first }) => first).length, 1);
      assert.equal(new Set(answers.map(({ occurrenceCount }) => occurrenceCount)).size, 100, "each raised the count once");
      assert.equal((await scene.recovery.group(answers[0]?.groupId as number))?.occurrenceCount, 100);
      assert.equal(await scene.evaluations(), answers.filter(({ evaluationQueued }) => evaluationQueued).length);
      assert.equal(await scene.evaluations(), 7, "at 1, 2, 5, 10, 20, 50 and 100");
      assert.equal((await scene.recovery.candidates({ limit: 10, current: false })).data.length, 1);
    }),
  );

  it(
    "REC-44: 1,000 ingests of 20 failures at once, in any order and in batches, lose nothing",
    play(async (scene) => {
      const failures = shuffled(Array.from({ length: 1_000 }, (_, i) => scene.failure(`kind-${i % 20}`)));
      const batches = [...failures.slice(0, 200).map((one) => [one])];
      for (let i = 200; i < 1_000; i += 20) batches.push(failures.slice(i, i + 20));
      const engines = await scene.instances(batches.length);
      const all = shuffled(batches).map((batch, i) => (engines[i] as (typeof engines)[number]).ingest(batch, scene.settings(1)));
      const answers = (await Promise.all(all)).flat();
      assert.equal(answers.length, 1_000);
      assert.equal(answers.filter(({ first }) => first).length, 20);
      const { data } = await scene.recovery.groups({ limit: 100 });
      assert.deepEqual(
        data.map(({ occurrenceCount }) => occurrenceCount),
        Array(20).fill(50),
      );
      assert.equal((await scene.recovery.candidates({ limit: 100, current: false })).data.length, 20);
      const { data: rows } = await scene.recovery.occurrences(data[0]?.groupId as number, { limit: 100 });
      assert.equal(rows.length, 50);
    }),
  );

  it(
    "the same key at once is one; with other payloads the rest are conflicts",
    play(async (scene) => {
      const engines = await scene.instances(20);
      const failure = scene.failure("slow");
      const same = await Promise.all(engines.map((engine) => engine.ingest([failure], scene.settings(0))));
      assert.deepEqual(tally(same.map(([answer]) => answer?.kind as string)), { accepted: 1, duplicate: 19 });
      const others = engines.map((_, i) => scene.failure(`kind-${i}`, { requestKey: "one-key", errorMessage: `text ${i}` }));
      const mixed = await Promise.all(
        engines.map((engine, i) => engine.ingest([others[i] as typeof failure], scene.settings(1))),
      );
      assert.deepEqual(tally(mixed.map(([answer]) => answer?.kind as string)), { accepted: 1, conflict: 19 });
      const { groups, occurrences } = await scene.recovery.stats([]);
      assert.deepEqual([groups, occurrences], [2, 2], "a conflict leaves no group behind");
    }),
  );

  it(
    "one match id supplied with ten failures at once is one group",
    play(async (scene) => {
      const engines = await scene.instances(10);
      const all = engines.map((engine, i) =>
        engine.ingest([scene.failure(`kind-${i}`, { failureMatchId: "outside-1" })], scene.settings(0)),
      );
      const answers = (await Promise.all(all)).map(([answer]) => answer as Ingested);
      assert.equal(new Set(answers.map(({ groupId }) => groupId)).size, 1);
      assert.equal((await scene.recovery.groupOf({ failureMatchId: "outside-1" }))?.occurrenceCount, 10);
      assert.equal((await scene.recovery.stats([])).groups, 1);
    }),
  );

  it(
    "a merge between ingests of both groups loses no count",
    play(async (scene) => {
      const [one, two] = [await scene.open("slow"), await scene.open("refused")];
      const engines = await scene.instances(41);
      const all = shuffled(engines).map((engine, i) => {
        if (i === 20) return engine.merge({ from: one.groupId, into: two.groupId, provenance: [], ...scene.at(5) });
        const both = shuffled([scene.failure("slow"), scene.failure("refused")]);
        return engine.ingest(both, scene.settings(5));
      });
      await Promise.all(all);
      const merged = await scene.recovery.group(two.groupId);
      assert.equal(merged?.occurrenceCount, 82);
      assert.equal((await scene.recovery.group(one.groupId))?.mergedInto, two.groupId);
      const { data } = await scene.recovery.occurrences(two.groupId, { limit: 100 });
      assert.equal(data.length, 82);
    }),
  );
});

describe("contention: writes", () => {
  it(
    "DR-1: of eight that claim one execution at once, one has it",
    play(async (scene) => {
      const { candidateId, version } = await scene.open("slow");
      const engines = await scene.instances(8);
      const claims = engines.map((engine, i) => {
        const patch = { decision: "approved", executionStatus: "executing", executionId: `e-${i}`, leaseMs: 1_000 } as const;
        const provenance = [scene.line({ candidateId, eventType: "executing", actor: `worker-${i}` })];
        return engine.write({ candidateId, version, patch, provenance, ...scene.at(1) });
      });
      const results = await Promise.all(claims);
      assert.deepEqual(tally(results.map(({ kind }) => kind)), { done: 1, version_conflict: 7 });
      const winner = results.findIndex(({ kind }) => kind === "done");
      assert.equal((await scene.recovery.candidate(candidateId))?.executionId, `e-${winner}`);
      const { data } = await scene.recovery.provenance({ candidateId }, { limit: 20 });
      assert.deepEqual(
        data.filter(({ eventType }) => eventType === "executing").map(({ actor }) => actor),
        [`worker-${winner}`],
      );
    }),
  );

  it(
    "people who approve at once are all kept",
    play(async (scene) => {
      const before = await scene.open("slow");
      const { candidateId } = before;
      const engines = await scene.instances(8);
      const approvals = engines.map((engine, i) => {
        const approval = { actor: i < 6 ? `person-${i}` : "person-0", note: null };
        return engine.write({ candidateId, patch: { approval }, provenance: [], ...scene.at(1) });
      });
      for (const { kind } of await Promise.all(approvals)) assert.equal(kind, "done");
      const after = (await scene.recovery.candidate(candidateId)) as Candidate;
      assert.deepEqual(after.approvals.map(({ actor }) => actor).sort(), [
        "person-0",
        "person-1",
        "person-2",
        "person-3",
        "person-4",
        "person-5",
      ]);
      assert.equal(after.version, before.version + 8);
    }),
  );

  it(
    "DR-32: a budget of three lets three of eight begin at once",
    play(async (scene) => {
      const candidates: Candidate[] = [];
      for (let i = 0; i < 8; i++) candidates.push(await scene.open(`kind-${i}`));
      const engines = await scene.instances(8);
      const budget = { executedBy: "system", windowMs: 60_000, executionsMax: 3 };
      const begun = candidates.map(({ candidateId, version }, i) => {
        const patch = { executionStatus: "executing", executionId: `e-${i}`, executedBy: "system", leaseMs: 1_000 } as const;
        const write = { candidateId, version, patch, budget, provenance: [], ...scene.at(1) };
        return (engines[i] as (typeof engines)[number]).write(write);
      });
      assert.deepEqual(tally((await Promise.all(begun)).map(({ kind }) => kind)), { done: 3, over_budget: 5 });
    }),
  );

  it(
    "two merges that cross are one merge",
    play(async (scene) => {
      const [one, two] = [await scene.open("slow"), await scene.open("refused")];
      const [a, b] = await scene.instances(2);
      const cross = [
        a?.merge({ from: one.groupId, into: two.groupId, provenance: [], ...scene.at(1) }),
        b?.merge({ from: two.groupId, into: one.groupId, provenance: [], ...scene.at(1) }),
      ];
      assert.deepEqual(tally((await Promise.all(cross)).map((result) => result?.kind as string)), { done: 1, wrong_state: 1 });
      assert.equal((await scene.recovery.groups({ limit: 5 })).data[0]?.occurrenceCount, 2);
    }),
  );

  it(
    "moving the same occurrences at once moves each once",
    play(async (scene) => {
      const [{ groupId }] = (await scene.ingest(0, ...Array.from({ length: 30 }, () => scene.failure("slow")))) as [Ingested];
      const made = await scene.recovery.split({ groupId, identity: identity("new"), provenance: [], ...scene.at(1) });
      const to = (made as { group: { groupId: number } }).group.groupId;
      const { data } = await scene.recovery.occurrences(groupId, { limit: 20 });
      const ids = data.map(({ occurrenceId }) => occurrenceId);
      const engines = await scene.instances(6);
      const moved = await Promise.all(engines.map((engine) => engine.moveOccurrences(groupId, to, shuffled(ids), scene.at(2))));
      assert.equal(
        moved.reduce((sum, n) => sum + n, 0),
        20,
      );
      const after = await Promise.all([groupId, to].map((id) => scene.recovery.group(id)));
      assert.deepEqual(
        after.map((group) => group?.occurrenceCount),
        [10, 20],
      );
    }),
  );

  it(
    "two editors of one document: one wins; what is learned at once adds up",
    play(async (scene) => {
      const engines = await scene.instances(8);
      const puts = engines.map((engine, i) =>
        engine.documents.put({ kind: "rule", id: "r", text: `${i}`, version: 0, actor: `a-${i}` }, scene.at(0)),
      );
      assert.deepEqual(tally((await Promise.all(puts)).map(({ kind }) => kind)), { done: 1, version_conflict: 7 });
      assert.equal(await scene.recovery.documents.revision("rule"), 1);
      const { groupId } = await scene.open("slow");
      const learned = [{ groupId, action: "retry", redriveId: scene.id(), healed: 2, failed: 1 }];
      await Promise.all(engines.map((engine) => engine.learn(learned, scene.at(5))));
      const observations = await scene.recovery.observations(groupId);
      assert.deepEqual(
        observations.map(({ healed, failed }) => [healed, failed]),
        [[16, 8]],
      );
    }),
  );
});

describe("contention: redrives", () => {
  it(
    "fault 42: pressed eight times at once is one redrive, and one runner has it",
    play(async (scene) => {
      await scene.die(0, 5);
      const engines = await scene.instances(8);
      const presses = engines.map((engine) => engine.redrives.start(scene.redrive({ idempotencyKey: "press" }), scene.at(1)));
      const started = await Promise.all(presses);
      assert.deepEqual(tally(started.map(({ kind }) => kind)), { started: 1, same: 7 });
      assert.equal(new Set(started.map((result) => (result as { redrive: Redrive }).redrive.redriveId)).size, 1);
      const claims = await Promise.all(engines.map((engine, i) => engine.redrives.claim(`runner-${i}`, 1_000, scene.at(2))));
      assert.equal(claims.filter((claim) => claim !== null).length, 1);
    }),
  );

  it(
    "items sent twice at once are sent once",
    play(async (scene) => {
      const ids = await scene.die(0, 40);
      const { redrive, token } = await scene.started(1);
      const engines = await scene.instances(4);
      const sends = engines.map((engine) => {
        const items = shuffled(ids.map((_, i) => ({ n: i + 1 })));
        return engine.redrives.send(redrive.redriveId, token, items, scene.at(2));
      });
      const sent = (await Promise.all(sends)).map((result) => (result.kind === "done" ? result.sent : 0));
      assert.equal(
        sent.reduce((sum, n) => sum + n, 0),
        40,
      );
      for (const id of ids) assert.equal((await seen(scene.store, id)).generation, 1);
    }),
  );

  it(
    "a person who replays while a redrive does: one of the two",
    play(async (scene) => {
      const ids = await scene.die(0, 20);
      const { redrive, token } = await scene.started(1);
      const items = ids.map((_, i) => ({ n: i + 1 }));
      const { revision } = await seen(scene.store, ids[0] as string);
      const person = { action: "replay", actor: "bo", reason: null, revision } as const;
      const [sent, ...results] = await Promise.all([
        scene.recovery.redrives.send(redrive.redriveId, token, items, scene.at(2)),
        ...ids.map((id) => scene.store.intervene({ id, ...person, ...scene.at(2) })),
      ]);
      const byHand = results.filter(({ kind }) => kind === "done").length;
      assert.equal((sent.kind === "done" ? sent.sent : 0) + byHand, 20);
      for (const id of ids) assert.equal((await seen(scene.store, id)).generation, 1);
    }),
  );

  it(
    "looks at once learn each outcome once",
    play(async (scene) => {
      const ids = await scene.die(0, 10);
      const [{ groupId }] = (await scene.ingestDeaths(1, "slow", ids)) as [Ingested];
      const { redrive, token } = await scene.started(2, { action: "retry" });
      const items = ids.map((_, i) => ({ n: i + 1 }));
      await scene.recovery.redrives.send(redrive.redriveId, token, items, scene.at(3));
      await scene.attempt(4, ids);
      const engines = await scene.instances(4);
      const how = { limit: 100, quietMs: 0 };
      const looks = await Promise.all(engines.map((engine) => engine.redrives.look(redrive.redriveId, token, how, scene.at(5))));
      for (const counts of looks) assert.ok(counts !== null);
      const observations = await scene.recovery.observations(groupId);
      assert.deepEqual(
        observations.map(({ healed, failed }) => [healed, failed]),
        [[10, 0]],
      );
      assert.equal((await scene.recovery.redrives.get(redrive.redriveId))?.counts.healed, 10);
    }),
  );

  it(
    "edited by four people at once: one edit",
    play(async (scene) => {
      const [id] = (await scene.die(0, 1, { key: "k-1" })) as [string];
      const engines = await scene.instances(4);
      const edits = engines.map((engine, i) => {
        const message = newMessage(scene.id(), { key: "k-1", payload: `{"by":${i}}` });
        return engine.redrives.edit({ id, message, actor: `person-${i}`, reason: "x", ...scene.at(1) });
      });
      const became = edits.map((edit) =>
        edit.then(
          () => "done",
          ({ code }: { code: string }) => code,
        ),
      );
      assert.deepEqual(tally(await Promise.all(became)), { done: 1, wrong_state: 3 });
      const { data } = await scene.store.list({ limit: 10 });
      assert.equal(data.filter(({ key }) => key === "k-1").length, 2);
    }),
  );
});
