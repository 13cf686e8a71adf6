/**
 * Candidates: what a write changes, what refuses it, and what is in the same write.
 */
import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { Candidate } from "../../../src/recovery/candidates/candidate.ts";
import type { CandidatePatch, CandidateWritten } from "../../../src/recovery/candidates/candidates-sql.ts";
import { newMessage, PLAIN, refused } from "../../../src/testing/store-conformance/fixtures.ts";
import { allPages, play } from "./scene.ts";

const EXECUTING = { decision: "approved", executionStatus: "executing" } as const satisfies CandidatePatch;

describe("candidates", () => {
  it(
    "a write changes what the patch names and nothing else, and raises the version",
    play(async (scene) => {
      const before = await scene.open("slow");
      const { candidateId } = before;
      const patch: CandidatePatch = {
        evaluationStatus: "evaluating",
        selectedAction: "retry_exponential",
        confidence: 0.2,
        evaluation: '{"why": ["timeout"] , "f":1.10}',
        owner: "ann",
        note: undefined,
      };
      const one = await scene.done({ candidateId, patch }, 3);
      const { note: _, ...named } = patch;
      assert.deepEqual(one, { ...before, ...named, version: before.version + 1, updatedAt: scene.at(3).now });
      const two = await scene.done(
        { candidateId, patch: { evaluationStatus: "evaluated", evaluated: true, groupVersion: 7 } },
        4,
      );
      const more = { evaluationStatus: "evaluated", evaluatedAt: scene.at(4).now, groupVersion: 7 };
      assert.deepEqual(two, { ...one, ...more, version: one.version + 1, updatedAt: scene.at(4).now });
      assert.deepEqual(await scene.recovery.candidate(candidateId), two);
      const three = await scene.done({ candidateId, patch: { owner: null, confidence: null, note: "seen" } }, 5);
      assert.deepEqual(
        [three.owner, three.confidence, three.note, three.selectedAction],
        [null, null, "seen", "retry_exponential"],
      );
    }),
  );

  it(
    "DR-3: a confidence comes back as the number that it was",
    play(async (scene) => {
      const { candidateId } = await scene.open("slow");
      for (const confidence of [0.2, 0.85, 0, 1, 0.1 + 0.2, 1 / 3]) {
        assert.equal((await scene.done({ candidateId, patch: { confidence } })).confidence, confidence);
        assert.equal((await scene.recovery.candidate(candidateId))?.confidence, confidence);
      }
    }),
  );

  it(
    "an execution is claimed, leased and ended under its fence",
    play(async (scene) => {
      const { candidateId, version } = await scene.open("slow");
      const claim = { ...EXECUTING, executionId: "e-1", executedBy: "ann", leaseMs: 60_000 };
      const running = await scene.done({ candidateId, version, patch: claim }, 10);
      assert.deepEqual([running.executionStatus, running.leaseUntil], ["executing", scene.at(60_010).now]);
      const ended: CandidatePatch = { executionStatus: "succeeded", executed: true, leaseMs: null, executionResult: '{"n":1}' };
      const wrong = await scene.recovery.write({
        candidateId,
        executionId: "e-2",
        patch: ended,
        provenance: [],
        ...scene.at(11),
      });
      assert.deepEqual(wrong, { kind: "version_conflict", candidate: running });
      const end = await scene.done({ candidateId, executionId: "e-1", patch: ended }, 12);
      assert.deepEqual([end.executionStatus, end.leaseUntil, end.executedAt], ["succeeded", null, scene.at(12).now]);
      assert.deepEqual([end.executionId, end.executedBy, end.executionResult], ["e-1", "ann", '{"n":1}']);
    }),
  );

  it(
    "a refused write changes nothing, and says what there is",
    play(async (scene) => {
      const candidate = await scene.open("slow");
      const { candidateId, groupId, version } = candidate;
      const message = newMessage(scene.id());
      const lines = [scene.line({ candidateId, eventType: "refused" })];
      const write = { candidateId, patch: { note: "no" }, provenance: lines, messages: [message], ...scene.at(1) };
      assert.deepEqual(await scene.recovery.write({ ...write, candidateId: 987_654 }), { kind: "not_found" });
      const stale = await scene.recovery.write({ ...write, version: version - 1, groupVersion: 9 });
      assert.deepEqual(stale, { kind: "version_conflict", candidate });
      assert.deepEqual(await scene.recovery.write({ ...write, groupVersion: 2 }), { kind: "group_changed", candidate });
      const budget = { executedBy: "system", windowMs: 1_000, executionsMax: 0 };
      assert.deepEqual(await scene.recovery.write({ ...write, groupVersion: 1, budget }), { kind: "over_budget", candidate });
      assert.deepEqual(await scene.recovery.candidate(candidateId), candidate);
      assert.equal(await scene.store.get(message.id), null);
      const { data } = await scene.recovery.provenance({ groupId }, { limit: 10 });
      assert.deepEqual(
        data.map(({ eventType }) => eventType),
        ["created"],
      );
    }),
  );

  it(
    "messages and provenance are in the same write; a key conflict takes all of it back",
    play(async (scene) => {
      const before = await scene.open("slow");
      const { candidateId } = before;
      const message = newMessage(scene.id(), { key: "k-1" });
      const line = scene.line({ candidateId, eventType: "notified" });
      await scene.done({ candidateId, patch: { note: "seen" }, provenance: [line], messages: [message] }, 1);
      assert.equal((await scene.store.get(message.id))?.key, "k-1");
      const other = newMessage(scene.id(), { key: "k-1", payload: '{"other":true}' });
      const fresh = newMessage(scene.id());
      const write = { candidateId, patch: { note: "again", heldBy: "ann" }, provenance: [line], messages: [fresh, other] };
      await refused("key_conflict", () => scene.recovery.write({ ...write, ...scene.at(2) }));
      const after = await scene.recovery.candidate(candidateId);
      assert.deepEqual([after?.note, after?.version], ["seen", before.version + 1]);
      assert.equal((await scene.recovery.group(before.groupId))?.heldBy, null);
      assert.equal((await scene.store.list({ topic: PLAIN, limit: 10 })).data.length, 1);
      const { data } = await scene.recovery.provenance({ candidateId }, { limit: 10 });
      assert.equal(data.filter(({ eventType }) => eventType === "notified").length, 1);
    }),
  );
});

describe("candidates: approvals", () => {
  it(
    "approvals are kept by actor, and the same actor twice is one",
    play(async (scene) => {
      const { candidateId } = await scene.open("slow");
      await scene.done(
        { candidateId, patch: { approval: { actor: "ann", note: "looks right", occurrenceCount: 7 }, groupVersion: 1 } },
        1,
      );
      await scene.done({ candidateId, patch: { approval: { actor: "ann", note: "again" } } }, 2);
      const both = await scene.done({ candidateId, patch: { approval: { actor: "bo", note: null } } }, 3);
      assert.deepEqual(both.approvals, [
        { actor: "ann", at: scene.at(1).now, note: "looks right", occurrenceCount: 7 },
        { actor: "bo", at: scene.at(3).now, note: null, occurrenceCount: null },
      ]);
      assert.deepEqual(await scene.recovery.candidate(candidateId), both);
      const fresh = await scene.done({ candidateId, patch: { clearApprovals: true, approval: { actor: "bo", note: "new" } } }, 4);
      assert.deepEqual(fresh.approvals, [{ actor: "bo", at: scene.at(4).now, note: "new", occurrenceCount: null }]);
      const none = await scene.done({ candidateId, patch: { clearApprovals: true } }, 5);
      assert.deepEqual(none.approvals, []);
    }),
  );

  it(
    "approvals belong to their candidate, in lists too",
    play(async (scene) => {
      const [one, two] = [await scene.open("slow"), await scene.open("refused")];
      await scene.done({ candidateId: one.candidateId, patch: { approval: { actor: "ann", note: null } } }, 1);
      const { data } = await scene.recovery.candidates({ limit: 10 });
      const found = new Map(data.map(({ candidateId, approvals }) => [candidateId, approvals.map(({ actor }) => actor)]));
      assert.deepEqual([found.get(one.candidateId), found.get(two.candidateId)], [["ann"], []]);
    }),
  );

  it(
    "a hold is the group's: it raises its version when it changes, and what was approved before has lapsed",
    play(async (scene) => {
      const { candidateId, groupId } = await scene.open("slow");
      const write = (patch: CandidatePatch, groupVersion?: number): Promise<CandidateWritten> =>
        scene.recovery.write({ candidateId, groupVersion, patch, provenance: [], ...scene.at(1) });
      const groupNow = async () => {
        const group = await scene.recovery.group(groupId);
        return [group?.heldBy, group?.version];
      };
      assert.equal((await write({ heldBy: "ann" }, 1)).kind, "done");
      assert.deepEqual(await groupNow(), ["ann", 2]);
      assert.equal((await write({ heldBy: "ann" })).kind, "done");
      assert.deepEqual(await groupNow(), ["ann", 2], "the same hold again is no change");
      assert.equal((await write({ note: "go" }, 1)).kind, "group_changed");
      assert.equal((await write({ heldBy: null }, 2)).kind, "done");
      assert.deepEqual(await groupNow(), [null, 3]);
    }),
  );
});

describe("candidates: executions", () => {
  it(
    "DR-32: a budget counts executions that began in its window, by who began them",
    play(async (scene) => {
      const candidates: Candidate[] = [];
      for (let i = 0; i < 6; i++) candidates.push(await scene.open(`kind-${i}`));
      const budget = { executedBy: "system", windowMs: 1_000, executionsMax: 2 };
      const begin = async (i: number, ms: number, by = "system") => {
        const { candidateId } = candidates[i] as Candidate;
        const patch = { ...EXECUTING, executionId: `e-${i}`, executedBy: by, leaseMs: 60_000 };
        const asked = by === "system" ? budget : undefined;
        return (await scene.recovery.write({ candidateId, patch, budget: asked, provenance: [], ...scene.at(ms) })).kind;
      };
      assert.equal(await begin(0, 0), "done");
      assert.equal(await begin(1, 100, "ann"), "done");
      assert.equal(await begin(2, 200), "done");
      const { candidateId } = candidates[0] as Candidate;
      await scene.done({ candidateId, patch: { executionStatus: "failed", executed: true } }, 300);
      assert.equal(await begin(3, 999), "over_budget", "one that ended still began in the window");
      assert.equal(await begin(3, 1_000), "done");
      assert.equal(await begin(4, 1_100), "over_budget");
      assert.equal(await begin(4, 1_200), "done");
    }),
  );

  it(
    "DR-5: executions whose lease is over are found; what has no lease is not",
    play(async (scene) => {
      const [late, early, carried] = [await scene.open("late"), await scene.open("early"), await scene.open("carried")];
      await scene.open("idle");
      const begin = ({ candidateId }: Candidate, leaseMs: number | null) =>
        scene.done({ candidateId, patch: { ...EXECUTING, executionId: "e", leaseMs } }, 10);
      await begin(late, 50);
      await begin(early, 20);
      await begin(carried, null);
      const expired = async (ms: number, limit = 10) =>
        (await scene.recovery.expiredExecutions(limit, scene.at(ms))).map(({ candidateId }) => candidateId);
      assert.deepEqual(await expired(30), [], "a lease holds to its last moment");
      assert.deepEqual(await expired(31), [early.candidateId]);
      assert.deepEqual(await expired(100), [early.candidateId, late.candidateId]);
      assert.deepEqual(await expired(100, 1), [early.candidateId]);
      await scene.done({ candidateId: early.candidateId, patch: { executionStatus: "unknown", leaseMs: null } }, 101);
      assert.deepEqual(await expired(102), [late.candidateId]);
    }),
  );

  it(
    "DR-5: a write under a lease is taken up to its last moment, not at it, and only while the execution runs",
    play(async (scene) => {
      const { candidateId } = await scene.open("slow");
      const leased = async (ms: number, patch: CandidatePatch = {}) =>
        (await scene.recovery.write({ candidateId, leased: true, patch, provenance: [], ...scene.at(ms) })).kind;
      assert.equal(await leased(1), "lease_over", "nothing runs");
      await scene.done({ candidateId, patch: { ...EXECUTING, executionId: "e", leaseMs: 50 } }, 10);
      assert.equal(await leased(59), "done");
      assert.equal(await leased(60), "lease_over");
      assert.equal(await leased(61), "lease_over");
      assert.equal((await scene.recovery.candidate(candidateId))?.executionStatus, "executing");
    }),
  );
});

type Stand = Pick<CandidatePatch, "decision" | "evaluationStatus" | "executionStatus">;

/** Walks that end with a step that is not allowed. */
const FORBIDDEN: readonly (readonly Stand[])[] = [
  [{ decision: "rejected" }, { decision: "approved" }],
  [{ decision: "rejected" }, { executionStatus: "executing" }],
  [{ evaluationStatus: "evaluated" }],
  [{ evaluationStatus: "evaluating" }, { evaluationStatus: "evaluated" }, { evaluationStatus: "evaluating" }],
  [{ executionStatus: "succeeded" }],
  [{ executionStatus: "rolled_back" }],
  [{ executionStatus: "executing" }, { executionStatus: "pending" }],
  [{ executionStatus: "executing" }, { executionStatus: "failed" }, { executionStatus: "executing" }],
  [{ executionStatus: "executing" }, { executionStatus: "unknown" }, { executionStatus: "executing" }],
  [{ executionStatus: "executing" }, { executionStatus: "unknown" }, { executionStatus: "skipped" }],
  [{ executionStatus: "skipped" }, { executionStatus: "rolled_back" }],
];

const ALLOWED: readonly (readonly Stand[])[] = [
  [{ evaluationStatus: "evaluating" }, { evaluationStatus: "failed" }, { evaluationStatus: "evaluating" }],
  [{ evaluationStatus: "evaluating" }, { evaluationStatus: "evaluated" }, { evaluationStatus: "unevaluated" }],
  [{ decision: "approved" }, { decision: "pending" }, { decision: "rejected" }],
  [{ executionStatus: "executing" }, { executionStatus: "succeeded" }, { executionStatus: "rolled_back" }],
  [{ executionStatus: "executing" }, { executionStatus: "unknown" }, { executionStatus: "failed" }],
  [{ executionStatus: "skipped" }],
];

describe("candidates: moves", () => {
  it(
    "DR-33: a move that no policy may make is refused, and nothing of its write is there",
    play(async (scene) => {
      for (const [i, walk] of FORBIDDEN.entries()) {
        const { candidateId } = await scene.open(`kind-${i}`);
        for (const patch of walk.slice(0, -1)) await scene.done({ candidateId, patch: { executionId: "e", ...patch } });
        const before = await scene.recovery.candidate(candidateId);
        const patch = { executionId: "e", note: "refused", ...walk.at(-1) };
        const provenance = [scene.line({ candidateId, eventType: "refused" })];
        await refused("wrong_state", () => scene.recovery.write({ candidateId, patch, provenance, ...scene.at(1) }));
        assert.deepEqual(await scene.recovery.candidate(candidateId), before, JSON.stringify(walk));
        const { data } = await scene.recovery.provenance({ candidateId }, { limit: 5 });
        assert.ok(data.every(({ eventType }) => eventType !== "refused"));
      }
    }),
  );

  it(
    "the moves of appendix E, lapsed approvals and ended unknowns are allowed; executing needs a fence",
    play(async (scene) => {
      for (const [i, walk] of ALLOWED.entries()) {
        const { candidateId } = await scene.open(`kind-${i}`);
        for (const patch of walk) await scene.done({ candidateId, patch: { executionId: "e", ...patch } });
      }
      const { candidateId } = await scene.open("fenceless");
      const patch = { executionStatus: "executing" } as const;
      await assert.rejects(() => scene.recovery.write({ candidateId, patch, provenance: [], ...scene.at(1) }));
      assert.equal((await scene.recovery.candidate(candidateId))?.executionStatus, "pending");
    }),
  );
});

describe("candidates: lists", () => {
  it(
    "candidates are listed newest first, the latest of each group, in pages that hold still",
    play(async (scene) => {
      const opened: number[] = [];
      for (let i = 0; i < 7; i++) opened.unshift((await scene.open(`kind-${i}`)).candidateId);
      const read = (cursor: string | undefined) => scene.recovery.candidates({ limit: 3, cursor });
      const seen = await allPages(read, () => scene.open("one-more"));
      assert.deepEqual(
        seen.map(({ candidateId }) => candidateId),
        opened,
      );
      await refused("invalid_request", () => scene.recovery.candidates({ limit: 3, cursor: "bm9uZQ" }));
    }),
  );

  it(
    "candidates are listed by what they are",
    play(async (scene) => {
      const [one, two] = [await scene.open("slow"), await scene.open("refused")];
      const [a, b] = [one.candidateId, two.candidateId];
      await scene.done({ candidateId: a, patch: { decision: "rejected", selectedAction: "skip_task" } }, 1);
      const [next] = await scene.ingest(2, scene.failure("slow"));
      const c = next?.candidateId;
      await scene.done({ candidateId: b, patch: { evaluationStatus: "evaluating", selectedAction: "notify_ops" } }, 3);
      const listed = async (filter: Omit<Parameters<typeof scene.recovery.candidates>[0], "limit">) =>
        (await scene.recovery.candidates({ limit: 10, ...filter })).data.map(({ candidateId }) => candidateId);
      assert.deepEqual(await listed({}), [c, b]);
      assert.deepEqual(await listed({ current: false }), [c, b, a]);
      assert.deepEqual(await listed({ decision: "rejected", current: false }), [a]);
      assert.deepEqual(await listed({ decision: "rejected" }), []);
      assert.deepEqual(await listed({ evaluationStatus: "evaluating" }), [b]);
      assert.deepEqual(await listed({ groupId: one.groupId, current: false }), [c, a]);
      assert.deepEqual(await listed({ action: "notify_ops" }), [b]);
      assert.deepEqual(await listed({ executionStatus: "executing" }), []);
      assert.equal(await scene.recovery.candidate(987_654), null);
      assert.equal(await scene.recovery.candidateOf(987_654), null);
    }),
  );
});
