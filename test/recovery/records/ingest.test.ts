/**
 * Ingest: what counts, what does not, and what is in the same write.
 */
import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { Candidate } from "../../../src/recovery/candidates/candidate.ts";
import { INGEST_MAX } from "../../../src/recovery/candidates/candidate-state.ts";
import type { Ingested } from "../../../src/recovery/failures/ingest.ts";
import type { Group } from "../../../src/recovery/groups/group.ts";
import { definition, hashOf, refused, seen } from "../../../src/testing/store-conformance/fixtures.ts";
import { died, EVALUATE, identity, play } from "./scene.ts";

const first = (answers: readonly Ingested[]): Ingested => answers[0] as Ingested;

describe("ingest", () => {
  it(
    "DR-26: the failure, its candidate and the message that asks for its evaluation are one write",
    play(async (scene) => {
      const answer = first(await scene.ingest(5, scene.failure("slow")));
      const { groupId, candidateId } = answer;
      const expected = { kind: "accepted", groupId, candidateId, occurrenceCount: 1, first: true, evaluationQueued: true };
      assert.deepEqual(answer, { ...expected, regression: false, failureMatchId: identity("slow").failureMatchId });
      const group = (await scene.recovery.group(groupId)) as Group;
      const counts = { occurrenceCount: 1, firstAt: scene.at(5).now, lastAt: scene.at(5).now, version: 1 };
      const rest = { groupId, mergedInto: null, heldBy: null, openMessages: 0 };
      const resolved = { resolvedIn: null, resolvedAt: null, resolvedBy: null, regressedIn: null, regressedAt: null };
      assert.deepEqual(group, { ...identity("slow"), ...counts, ...rest, ...resolved, openReports: 1, regression: false });
      const candidate = (await scene.recovery.candidate(candidateId)) as Candidate;
      assert.deepEqual(candidate, {
        ...{ candidateId, groupId, round: 1, version: 2, createdAt: scene.at(5).now, updatedAt: scene.at(5).now },
        ...{ decision: "pending", approvals: [], evaluationStatus: "unevaluated", evaluations: 1, evaluatedAt: null },
        ...{ selectedAction: null, confidence: null, evaluation: null, groupVersion: 1, executionStatus: "pending" },
        ...{ executionId: null, executedBy: null, leaseUntil: null, executedAt: null, executionResult: null },
        ...{ redriveId: null, owner: null, note: null, reportsThrough: null },
      });
      const { data } = await scene.store.list({ topic: EVALUATE, limit: 10 });
      assert.deepEqual(
        data.map(({ payload }) => payload),
        [`{"candidate_id":${candidateId},"group_id":${groupId},"evaluation":1}`],
      );
    }),
  );

  it(
    "DR-26: an evaluation that cannot be queued leaves nothing behind",
    play(async (scene) => {
      await scene.store.topics.delete(EVALUATE, "code");
      const failure = scene.failure("slow", { failureMatchId: "outside-1" });
      await refused("unknown_topic", () => scene.ingest(0, failure));
      assert.equal(await scene.recovery.groupOf({ fingerprint: failure.group.fingerprint }), null);
      assert.equal(await scene.recovery.groupOf({ failureMatchId: "outside-1" }), null);
      await scene.store.topics.put(definition(EVALUATE), "code");
      const again = first(await scene.ingest(1, failure));
      assert.deepEqual([again.kind, again.occurrenceCount, again.first], ["accepted", 1, true]);
    }),
  );

  it(
    "the same key and payload again counts nothing and asks for nothing",
    play(async (scene) => {
      const failure = scene.failure("slow");
      const before = first(await scene.ingest(0, failure));
      const again = first(await scene.ingest(9, { ...failure, failureMatchId: "late" }));
      assert.deepEqual(again, { ...before, kind: "duplicate", first: false, evaluationQueued: false, failureMatchId: "late" });
      const group = await scene.recovery.group(before.groupId);
      assert.deepEqual([group?.occurrenceCount, group?.lastAt], [1, scene.at(0).now]);
      assert.equal(await scene.evaluations(), 1);
      assert.equal(await scene.recovery.groupOf({ failureMatchId: "late" }), null, "a repeat writes nothing");
    }),
  );

  it(
    "DR-35: the same key with another payload is a conflict; the rest of the call counts",
    play(async (scene) => {
      const failure = scene.failure("slow");
      const before = first(await scene.ingest(0, failure));
      const other = scene.failure("other", { requestKey: failure.requestKey, errorMessage: "something else" });
      const answers = await scene.ingest(1, scene.failure("third"), other, scene.failure("slow"));
      assert.deepEqual(
        answers.map(({ kind, first }) => [kind, first]),
        [
          ["accepted", true],
          ["conflict", false],
          ["accepted", false],
        ],
      );
      assert.deepEqual([answers[1]?.groupId, answers[1]?.candidateId], [before.groupId, before.candidateId]);
      assert.equal(answers[2]?.occurrenceCount, 2);
      assert.equal(await scene.recovery.groupOf({ fingerprint: identity("other").fingerprint }), null);
    }),
  );

  it(
    "a key that comes twice in one call is one; no key is never a repeat",
    play(async (scene) => {
      const failure = scene.failure("slow");
      const other = { ...failure, payloadHash: hashOf("another") };
      const keyless = scene.failure("slow", { requestKey: null });
      const answers = await scene.ingest(0, failure, failure, other, keyless, keyless);
      assert.deepEqual(
        answers.map(({ kind }) => kind),
        ["accepted", "duplicate", "conflict", "accepted", "accepted"],
      );
      for (const { occurrenceCount } of answers) assert.equal(occurrenceCount, 3, "the count after the whole write");
      assert.deepEqual(
        answers.map(({ first }) => first),
        [true, false, false, false, false],
      );
    }),
  );

  it(
    "an evaluation is asked for once per group and write, and not for what asks for none",
    play(async (scene) => {
      const [a, b] = ["slow", "refused"];
      const quiet = scene.failure(b, { evaluate: false });
      await scene.ingest(0, scene.failure(a), quiet, scene.failure(a), scene.failure(a));
      assert.equal(await scene.evaluations(), 1);
      const group = (await scene.recovery.groupOf({ fingerprint: identity(b).fingerprint })) as Group;
      const before = await scene.recovery.candidateOf(group.groupId);
      assert.deepEqual([before?.version, before?.evaluations], [1, 0], "what asks for none leaves the candidate as it was");
      const last = scene.failure(b, { evaluate: false });
      await scene.ingest(0, quiet, scene.failure(b, { evaluate: false }), scene.failure(b), last);
      await scene.ingest(0, scene.failure(b, { evaluate: false }));
      assert.equal(await scene.evaluations(), 2);
      const after = await scene.recovery.candidateOf(group.groupId);
      assert.deepEqual([after?.version, after?.evaluations, after?.evaluationStatus], [2, 1, "unevaluated"]);
    }),
  );

  it(
    "queued is said of what was counted and asks for an evaluation, and of nothing else",
    play(async (scene) => {
      const known = scene.failure("slow", { evaluate: false });
      await scene.ingest(0, known);
      const quiet = scene.failure("slow", { evaluate: false });
      const other = { ...known, evaluate: true, payloadHash: hashOf("other") };
      const answers = await scene.ingest(1, { ...known, evaluate: true }, quiet, scene.failure("slow"), other);
      assert.deepEqual(
        answers.map(({ kind, evaluationQueued }) => [kind, evaluationQueued]),
        [
          ["duplicate", false],
          ["accepted", false],
          ["accepted", true],
          ["conflict", false],
        ],
      );
      assert.equal(await scene.evaluations(), 1);
    }),
  );

  it(
    "an evaluation that is asked for again makes an evaluated candidate unevaluated",
    play(async (scene) => {
      const { candidateId, version } = await scene.open("slow");
      await scene.done({ candidateId, version, patch: { evaluationStatus: "evaluating" } });
      await scene.done({ candidateId, patch: { evaluationStatus: "evaluated", evaluated: true } });
      const [answer] = await scene.ingest(3, scene.failure("slow"));
      assert.equal(answer?.evaluationQueued, true);
      const after = await scene.recovery.candidate(candidateId);
      assert.deepEqual([after?.evaluationStatus, after?.evaluations, after?.version], ["unevaluated", 2, version + 3]);
      assert.equal(await scene.evaluations(), 2);
    }),
  );

  it(
    "a batch counts each, up to its limit",
    play(async (scene) => {
      const failures = Array.from({ length: INGEST_MAX }, (_, i) => scene.failure(`kind-${i % 3}`));
      const answers = await scene.ingest(0, ...failures);
      assert.deepEqual(
        answers.map(({ occurrenceCount }) => occurrenceCount),
        failures.map((_, i) => (i % 3 === 2 ? 66 : 67)),
      );
      await refused("invalid_request", () => scene.ingest(1, ...failures, scene.failure("slow")));
      assert.deepEqual(await scene.ingest(1), []);
    }),
  );

  it(
    "a clock that runs behind makes no failure the last one",
    play(async (scene) => {
      const { groupId } = first(await scene.ingest(9, scene.failure("slow")));
      await scene.ingest(5, scene.failure("slow"));
      const group = await scene.recovery.group(groupId);
      assert.deepEqual([group?.occurrenceCount, group?.lastAt], [2, scene.at(9).now]);
    }),
  );

  it(
    "an occurrence gives back every field, and text as it was",
    play(async (scene) => {
      const errorMessage = `${"x".repeat(3_000)}\u2028\u0007 "quoted" \\ 😀 ü`;
      const failurePayload = '{ "n":12345678901234567890,"f":1.10, "b":1,"b":2,"nul":"\\u0000" }';
      const texts = { errorMessage, failurePayload, stackTrace: "at f (a.ts:1:2)\n  at g" };
      const fields = { ...texts, skillId: "search", tenantId: "t-1", failureMatchId: "m/1" };
      const failure = scene.failure("slow", { ...fields, source: "stream" });
      const { groupId } = first(await scene.ingest(7, failure));
      const { data } = await scene.recovery.occurrences(groupId, { limit: 5 });
      const { group, evaluate: _, payloadHash: __, ...kept } = failure;
      const more = { occurrenceId: data[0]?.occurrenceId, groupId, errorCode: group.errorCode, at: scene.at(7).now, open: null };
      const outside = { openReport: true, version: null, redriveTopic: null, sentId: null };
      assert.deepEqual(data, [{ ...kept, ...more, ...outside }]);
    }),
  );
});

describe("match ids", () => {
  it(
    "a supplied match id is kept, joins the group of its fingerprint, and sticks to it",
    play(async (scene) => {
      const own = first(await scene.ingest(0, scene.failure("slow")));
      const joined = first(await scene.ingest(1, scene.failure("slow", { failureMatchId: "outside-1" })));
      assert.deepEqual([joined.groupId, joined.failureMatchId, joined.occurrenceCount], [own.groupId, "outside-1", 2]);
      const stuck = first(await scene.ingest(2, scene.failure("quite-another", { failureMatchId: "outside-1" })));
      assert.deepEqual([stuck.groupId, stuck.first, stuck.occurrenceCount], [own.groupId, false, 3]);
      assert.equal(await scene.recovery.groupOf({ fingerprint: identity("quite-another").fingerprint }), null);
      const byId = await scene.recovery.groupOf({ failureMatchId: "outside-1" });
      assert.equal(byId?.groupId, own.groupId);
      assert.equal(byId?.failureMatchId, own.failureMatchId, "the group keeps its own id");
    }),
  );

  it(
    "a group's own match id, supplied from outside, is that group",
    play(async (scene) => {
      const own = first(await scene.ingest(0, scene.failure("slow")));
      const named = first(await scene.ingest(1, scene.failure("other", { failureMatchId: own.failureMatchId })));
      assert.deepEqual([named.groupId, named.failureMatchId], [own.groupId, own.failureMatchId]);
    }),
  );

  it(
    "a match id that another write took before its group existed stays one group's",
    play(async (scene) => {
      const taken = identity("later").failureMatchId;
      const holder = first(await scene.ingest(0, scene.failure("slow", { failureMatchId: taken })));
      const later = first(await scene.ingest(1, scene.failure("later")));
      assert.equal(later.groupId, holder.groupId);
      assert.equal((await scene.recovery.groupOf({ failureMatchId: taken }))?.groupId, holder.groupId);
    }),
  );

  it(
    "match ids of one call see each other",
    play(async (scene) => {
      const answers = await scene.ingest(
        0,
        scene.failure("slow", { failureMatchId: "outside-1" }),
        scene.failure("refused"),
        scene.failure("refused", { failureMatchId: "outside-1" }),
      );
      assert.equal(answers[2]?.groupId, answers[0]?.groupId);
      assert.notEqual(answers[1]?.groupId, answers[0]?.groupId);
    }),
  );
});

describe("deaths", () => {
  it(
    "a dead letter waits to be ingested until its death is counted, oldest first",
    play(async (scene) => {
      const [one, two] = (await scene.accept(0, { tenantId: "t-1" }, {})) as [string, string];
      await scene.attempt(5, [two], died());
      await scene.attempt(10, [one], died());
      await scene.die(20, 1, { topic: EVALUATE });
      const dead = { topic: "test/plain", generation: 0, attempts: 1, code: "http_503", error: "took 1003 ms" };
      assert.deepEqual(await scene.recovery.uningested(10, ["recovery/"]), [
        { id: two, tenantId: null, ...dead },
        { id: one, tenantId: "t-1", ...dead },
      ]);
      assert.equal((await scene.recovery.uningested(10, [])).length, 3);
      assert.equal((await scene.recovery.uningested(1, [])).length, 1);
      assert.equal((await scene.recovery.stats([])).uningested, 3);
      assert.equal(
        (await scene.recovery.stats(["recovery/"])).uningested,
        (await scene.recovery.uningested(10, ["recovery/"])).length,
      );
      const [answer] = await scene.ingestDeaths(30, "slow", [two]);
      assert.deepEqual(
        (await scene.recovery.uningested(10, ["recovery/"])).map(({ id }) => id),
        [one],
      );
      assert.equal((await scene.recovery.group(answer?.groupId as number))?.openMessages, 1);
    }),
  );

  it(
    "of two looks at one message in one write the later one is its death, in either order",
    play(async (scene) => {
      for (const attempts of [
        [0, 1],
        [1, 0],
      ]) {
        const [id] = (await scene.die(0)) as [string];
        const look = (n: number) =>
          scene.failure(`slow-${n}`, { source: "message", message: { id, generation: 0, attempts: n } });
        await scene.ingest(1, ...attempts.map(look));
        assert.deepEqual(await scene.recovery.uningested(10, []), []);
      }
    }),
  );

  it(
    "a second death of a message waits again, and counts again",
    play(async (scene) => {
      const ids = await scene.die(0);
      const [id] = ids as [string];
      const { groupId } = first(await scene.ingestDeaths(1, "slow", ids));
      await scene.store.intervene({ id, action: "replay", actor: "ann", reason: null, ...scene.at(2) });
      assert.deepEqual(await scene.recovery.uningested(10, []), []);
      assert.equal((await scene.recovery.group(groupId))?.openMessages, 0);
      await scene.attempt(3, ids, { kind: "dead", blocksOrder: false, outcome: "reject", code: "http_400", error: "refused" });
      const [again] = await scene.recovery.uningested(10, []);
      assert.deepEqual([again?.id, again?.generation, again?.attempts, again?.code], [id, 1, 2, "http_400"]);
      assert.equal((await scene.recovery.group(groupId))?.openMessages, 0, "it is not known yet what it died of");
      const other = first(await scene.ingestDeaths(4, "refused", ids));
      assert.notEqual(other.groupId, groupId);
      assert.equal((await scene.recovery.groupOf({ messageId: id }))?.groupId, other.groupId);
      const opened = await Promise.all([groupId, other.groupId].map((each) => scene.recovery.group(each)));
      assert.deepEqual(
        opened.map((group) => group?.openMessages),
        [0, 1],
      );
      const before = await scene.recovery.occurrences(groupId, { limit: 10 });
      assert.deepEqual(
        before.data.map(({ open, message }) => [open, message]),
        [[false, { id, generation: 0, attempts: 1 }]],
      );
    }),
  );

  it(
    "what failed often and was handed in early counts once when it dies, and is open then",
    play(async (scene) => {
      const [id] = (await scene.accept(0)) as [string];
      const requestKey = `message:${id}:0:slow`;
      const early = scene.failure("slow", { requestKey, source: "message", message: { id, generation: 0, attempts: 1 } });
      const { groupId } = first(await scene.ingest(1, early));
      assert.equal((await scene.recovery.group(groupId))?.openMessages, 0);
      await scene.attempt(2, [id], { ...retryNow, delayMs: 0 });
      await scene.attempt(3, [id], { kind: "dead", blocksOrder: false, outcome: "reject", code: "x", error: null });
      assert.equal((await scene.recovery.uningested(5, [])).length, 1);
      const death = { ...early, message: { id, generation: 0, attempts: 2 } };
      const answer = first(await scene.ingest(4, death));
      assert.deepEqual([answer.kind, answer.occurrenceCount], ["duplicate", 1]);
      assert.deepEqual(await scene.recovery.uningested(5, []), []);
      assert.equal((await scene.recovery.group(groupId))?.openMessages, 1);
    }),
  );

  it(
    "a death whose key is taken by another payload does not come again for ever",
    play(async (scene) => {
      const [id] = (await scene.die(0)) as [string];
      await scene.ingest(1, scene.failure("slow", { requestKey: "taken" }));
      const message = { id, generation: 0, attempts: 1 };
      const answer = first(await scene.ingest(2, scene.failure("slow", { requestKey: "taken", errorMessage: "other", message })));
      assert.equal(answer.kind, "conflict");
      assert.deepEqual(await scene.recovery.uningested(5, []), []);
      assert.equal((await scene.recovery.group(answer.groupId))?.openMessages, 0, "what is counted there is something else");
    }),
  );

  it(
    "a death that is over is not marked, and settled ones do not wait",
    play(async (scene) => {
      const ids = await scene.die(0, 2);
      const [one, two] = ids as [string, string];
      await scene.store.intervene({ id: two, action: "resolve", actor: "ann", reason: null, ...scene.at(1) });
      assert.deepEqual(
        (await scene.recovery.uningested(5, [])).map(({ id }) => id),
        [one],
      );
      for (const attempts of [7, 0]) {
        await scene.ingest(2, scene.failure("slow", { message: { id: one, generation: 0, attempts } }));
        assert.equal((await scene.recovery.uningested(5, [])).length, 1, "these are not the attempts it died with");
      }
      assert.equal((await seen(scene.store, one)).status, "dead");
      await scene.ingest(3, scene.failure("slow", { message: { id: scene.id(), generation: 0, attempts: 1 } }));
      const [alive] = (await scene.accept(4)) as [string];
      await scene.ingest(5, scene.failure("slow", { message: { id: alive, generation: 0, attempts: 1 } }));
      await scene.attempt(6, [alive], died());
      assert.equal((await scene.recovery.uningested(5, [])).length, 2, "it was not dead when it was handed in");
    }),
  );
});

const retryNow = { kind: "retry", counted: true, suspicion: 0, outcome: "retry", code: "http_503", error: "late" } as const;

describe("rounds", () => {
  it(
    "the next failure after an execution that ended opens the next round, and asks for its evaluation",
    play(async (scene) => {
      const { candidateId, groupId } = await scene.open("slow");
      await scene.ingest(1, ...Array.from({ length: 29 }, () => scene.failure("slow")));
      const claimed = { executionStatus: "executing", executionId: "e-1", decision: "approved" } as const;
      await scene.done({ candidateId, patch: claimed }, 2);
      const during = first(await scene.ingest(3, scene.failure("slow")));
      assert.deepEqual([during.candidateId, during.evaluationQueued], [candidateId, false]);
      await scene.done({ candidateId, patch: { executionStatus: "succeeded", executed: true } }, 4);
      const queued = await scene.evaluations();
      const answer = first(await scene.ingest(5, scene.failure("slow")));
      assert.notEqual(answer.candidateId, candidateId);
      assert.deepEqual([answer.evaluationQueued, answer.occurrenceCount, await scene.evaluations()], [true, 32, queued + 1]);
      const next = await scene.recovery.candidateOf(groupId);
      assert.deepEqual([next?.candidateId, next?.round, next?.evaluations], [answer.candidateId, 2, 1]);
      assert.equal((await scene.recovery.candidate(candidateId))?.executionStatus, "succeeded");
    }),
  );

  it(
    "a rejected candidate rests as long as the settings say",
    play(async (scene) => {
      const { candidateId } = await scene.open("slow");
      await scene.done({ candidateId, patch: { decision: "rejected" } }, 1);
      const at = async (ms: number) => {
        const settings = scene.settings(ms, { rejectedRestMs: 10 });
        return first(await scene.recovery.ingest([scene.failure("slow")], settings));
      };
      const resting = await at(5);
      assert.deepEqual([resting.candidateId, resting.evaluationQueued, resting.occurrenceCount], [candidateId, false, 2]);
      assert.notEqual((await at(11)).candidateId, candidateId);
    }),
  );

  it(
    "DR-5: an unknown execution is not closed: no round is opened beside it",
    play(async (scene) => {
      const { candidateId } = await scene.open("slow");
      await scene.done({ candidateId, patch: { decision: "approved", executionStatus: "executing", executionId: "e-1" } }, 1);
      await scene.done({ candidateId, patch: { executionStatus: "unknown", leaseMs: null } }, 2);
      assert.equal(first(await scene.ingest(3, scene.failure("slow"))).candidateId, candidateId);
    }),
  );

  it(
    "reopen opens the next round of a closed candidate however long it has to rest, and asks for an evaluation",
    play(async (scene) => {
      const { candidateId, groupId } = await scene.open("slow");
      await scene.done({ candidateId, patch: { decision: "rejected" } }, 1);
      const line = scene.line({ groupId, eventType: "asked" });
      const next = await scene.recovery.reopen(groupId, scene.settings(2, { rejectedRestMs: 1e9 }), [line]);
      assert.deepEqual([next?.round, next?.evaluations, next?.decision], [2, 1, "pending"]);
      assert.deepEqual(next, await scene.recovery.candidateOf(groupId));
      assert.equal(await scene.evaluations(), 2);
      const { data } = await scene.recovery.provenance({ candidateId: next?.candidateId as number }, { limit: 5 });
      assert.deepEqual(data.map(({ eventType }) => eventType).sort(), ["asked", "created"]);
    }),
  );

  it(
    "reopen leaves an open candidate as it is, unless a person asks",
    play(async (scene) => {
      const before = await scene.open("slow");
      const { groupId } = before;
      assert.deepEqual(await scene.recovery.reopen(groupId, scene.settings(2), []), before);
      const asked = await scene.recovery.reopen(groupId, scene.settings(3, { asked: true }), []);
      assert.deepEqual([asked?.candidateId, asked?.evaluations, asked?.version], [before.candidateId, 2, before.version + 1]);
      assert.equal(await scene.evaluations(), 2);
      assert.equal(await scene.recovery.reopen(987_654, scene.settings(4), [scene.line({ groupId: 987_654 })]), null);
      assert.deepEqual((await scene.recovery.provenance({ groupId: 987_654 }, { limit: 5 })).data, []);
    }),
  );
});
