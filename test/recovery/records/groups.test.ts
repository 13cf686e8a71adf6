/**
 * Groups: found, listed, merged and split; counts go along and none is lost.
 */
import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { Occurrence } from "../../../src/recovery/failures/failure.ts";
import type { Ingested } from "../../../src/recovery/failures/ingest.ts";
import type { Group, GroupFilter } from "../../../src/recovery/groups/group.ts";
import type { GroupChanged } from "../../../src/recovery/groups/group-writes.ts";
import { refused } from "../../../src/testing/store-conformance/fixtures.ts";
import { allPages, died, identity, play, type RecoveryScene } from "./scene.ts";

/** Ingests so many failures of a kind, and answers with its group. */
async function groupOf(scene: RecoveryScene, name: string, count: number, ms = 0): Promise<number> {
  const [answer] = await scene.ingest(ms, ...Array.from({ length: count }, () => scene.failure(name)));
  return (answer as Ingested).groupId;
}

async function countOf(scene: RecoveryScene, groupId: number): Promise<number | undefined> {
  return (await scene.recovery.group(groupId))?.occurrenceCount;
}

const merging = (scene: RecoveryScene, from: number, into: number, ms = 10): Promise<GroupChanged> =>
  scene.recovery.merge({ from, into, provenance: [scene.line({ groupId: into, eventType: "merged" })], ...scene.at(ms) });

describe("groups", () => {
  it(
    "a group is found by its fingerprint, its ids and its messages",
    play(async (scene) => {
      const ids = await scene.die(0);
      const [{ groupId }] = (await scene.ingestDeaths(1, "slow", ids)) as [Ingested];
      const { fingerprint, failureMatchId } = identity("slow");
      for (const by of [{ fingerprint }, { failureMatchId }, { messageId: ids[0] as string }]) {
        assert.equal((await scene.recovery.groupOf(by))?.groupId, groupId);
      }
      for (const by of [
        { fingerprint: "f1.no.0" },
        { failureMatchId: identity("no").failureMatchId },
        { messageId: scene.id() },
      ]) {
        assert.equal(await scene.recovery.groupOf(by), null);
      }
      assert.equal(await scene.recovery.group(987_654), null);
    }),
  );

  it(
    "groups are listed by their last failure, latest first, in pages that hold still",
    play(async (scene) => {
      const made: number[] = [];
      for (let i = 0; i < 7; i++) made.push(await groupOf(scene, `kind-${i}`, 1, i < 3 ? 5 : 6));
      await groupOf(scene, "kind-1", 1, 9);
      const read = (cursor: string | undefined) => scene.recovery.groups({ limit: 2, cursor });
      const seen = await allPages(read, () => groupOf(scene, "newest", 1, 20));
      const order = [1, 6, 5, 4, 3, 2, 0].map((i) => made[i]);
      assert.deepEqual(
        seen.map(({ groupId }) => groupId),
        order,
      );
      await refused("invalid_request", () => scene.recovery.groups({ limit: 2, cursor: "e30" }));
    }),
  );

  it(
    "groups are listed by topic, code, tenant, and whether messages lie open in them",
    play(async (scene) => {
      const ids = await scene.die(0);
      const [slow] = (await scene.ingestDeaths(1, "slow", ids)) as [Ingested];
      const other = scene.failure("refused", {
        tenantId: "t-1",
        group: identity("refused", { topic: "other/plain", errorCode: "http_422" }),
      });
      const [refusedOne] = (await scene.ingest(2, other, scene.failure("refused", { group: other.group }))) as [Ingested];
      const listed = async (filter: Omit<GroupFilter, "limit">) =>
        (await scene.recovery.groups({ limit: 10, ...filter })).data.map(({ groupId }) => groupId);
      assert.deepEqual(await listed({}), [refusedOne.groupId, slow.groupId]);
      assert.deepEqual(await listed({ topic: "other/plain" }), [refusedOne.groupId]);
      assert.deepEqual(await listed({ errorCode: "timeout" }), [slow.groupId]);
      assert.deepEqual(await listed({ tenantId: "t-1" }), [refusedOne.groupId]);
      assert.deepEqual(await listed({ tenantId: "t-2" }), []);
      assert.deepEqual(await listed({ open: true }), [slow.groupId]);
      await scene.store.intervene({ id: ids[0] as string, action: "discard", actor: "ann", reason: "x", ...scene.at(3) });
      assert.deepEqual(await listed({ open: true }), []);
    }),
  );

  it(
    "occurrences are listed newest first, in pages that hold still, by tenant and by what is open",
    play(async (scene) => {
      const ids = await scene.die(0, 4, { tenantId: "t-1" });
      const [{ groupId }] = (await scene.ingestDeaths(1, "slow", ids)) as [Ingested];
      await scene.ingest(2, scene.failure("slow", { tenantId: "t-2" }));
      await scene.store.intervene({ id: ids[0] as string, action: "replay", actor: "ann", reason: null, ...scene.at(3) });
      const list =
        (more: object = {}) =>
        (cursor: string | undefined) =>
          scene.recovery.occurrences(groupId, { limit: 2, cursor, ...more });
      const seen = await allPages<Occurrence>(list(), () => scene.ingest(4, scene.failure("slow")));
      assert.deepEqual(
        seen.map(({ tenantId, message, open }) => [tenantId, message?.id ?? null, open]),
        [
          ["t-2", null, null],
          ["t-1", ids[3], true],
          ["t-1", ids[2], true],
          ["t-1", ids[1], true],
          ["t-1", ids[0], false],
        ],
      );
      assert.equal((await allPages<Occurrence>(list({ open: true }))).length, 3);
      assert.equal((await allPages<Occurrence>(list({ open: false }))).length, 1);
      assert.equal((await allPages<Occurrence>(list({ tenantId: "t-2" }))).length, 1);
      assert.deepEqual(await scene.recovery.occurrences(987_654, { limit: 5 }), { data: [], nextCursor: null });
    }),
  );
});

describe("groups: merges", () => {
  it(
    "a merge adds counts up, raises both versions, and what comes later is counted where it went",
    play(async (scene) => {
      const from = await groupOf(scene, "sluggish", 1, 3);
      const into = await groupOf(scene, "slow", 3, 5);
      await groupOf(scene, "sluggish", 3, 8);
      const result = await merging(scene, from, into);
      assert.equal(result.kind, "done");
      const { group } = result as { group: Group };
      assert.deepEqual([group.groupId, group.occurrenceCount, group.version], [into, 7, 2]);
      assert.deepEqual([group.firstAt, group.lastAt], [scene.at(3).now, scene.at(8).now]);
      assert.deepEqual(await scene.recovery.group(into), group);
      const merged = await scene.recovery.group(from);
      assert.deepEqual([merged?.mergedInto, merged?.version, merged?.occurrenceCount, merged?.openMessages], [into, 2, 4, 0]);
      const [later] = await scene.ingest(20, scene.failure("sluggish"));
      assert.deepEqual([later?.groupId, later?.occurrenceCount, later?.first], [into, 8, false]);
      assert.equal((await scene.recovery.groupOf({ fingerprint: identity("sluggish").fingerprint }))?.groupId, into);
      for (const id of [into, from]) {
        const { data } = await scene.recovery.occurrences(id, { limit: 20 });
        assert.equal(data.length, 8);
        assert.equal(data.filter(({ groupId }) => groupId === from).length, 4);
      }
      const listed = async (filter: object) => (await scene.recovery.groups({ limit: 9, ...filter })).data.length;
      assert.deepEqual([await listed({}), await listed({ merged: true })], [1, 2]);
      const { groups, occurrences } = await scene.recovery.stats([]);
      assert.deepEqual([groups, occurrences], [1, 8]);
    }),
  );

  it(
    "merged groups are flat: ids that were supplied, ledgers and messages follow to the end",
    play(async (scene) => {
      const ids = await scene.die(0);
      const [{ groupId: a }] = (await scene.ingestDeaths(1, "a", ids)) as [Ingested];
      const alias = scene.failure("a", { failureMatchId: "outside-1" });
      await scene.ingest(2, alias);
      const b = await groupOf(scene, "b", 1, 3);
      const c = await groupOf(scene, "c", 1, 4);
      assert.equal((await merging(scene, a, b)).kind, "done");
      assert.equal((await merging(scene, b, c)).kind, "done");
      for (const id of [a, b]) {
        const merged = await scene.recovery.group(id);
        assert.deepEqual([merged?.mergedInto, merged?.openMessages], [c, 0]);
      }
      assert.equal((await scene.recovery.groupOf({ failureMatchId: "outside-1" }))?.groupId, c);
      assert.equal((await scene.recovery.groupOf({ failureMatchId: identity("a").failureMatchId }))?.groupId, c);
      assert.equal((await scene.recovery.groupOf({ messageId: ids[0] as string }))?.groupId, c);
      const [again, named] = await scene.ingest(20, alias, scene.failure("zzz", { failureMatchId: "outside-1" }));
      assert.deepEqual([again?.kind, again?.groupId, named?.groupId, named?.occurrenceCount], ["duplicate", c, c, 5]);
      assert.equal((await scene.recovery.group(c))?.openMessages, 1);
      assert.equal((await scene.recovery.candidateOf(a))?.groupId, c);
    }),
  );

  it(
    "a merge is refused while either side executes or nobody knows, and for what is no pair of groups",
    play(async (scene) => {
      const [one, two] = [await scene.open("slow"), await scene.open("refused")];
      const [a, b] = [one.groupId, two.groupId];
      const kinds = async () => [(await merging(scene, a, b)).kind, (await merging(scene, b, a)).kind];
      const { candidateId } = one;
      await scene.done({ candidateId, patch: { decision: "approved", executionStatus: "executing", executionId: "e" } }, 1);
      assert.deepEqual(await kinds(), ["wrong_state", "wrong_state"]);
      await scene.done({ candidateId, patch: { executionStatus: "unknown" } }, 2);
      const blocked = await merging(scene, a, b);
      assert.deepEqual([blocked.kind, (blocked as { group: Group }).group.groupId], ["wrong_state", a]);
      await scene.done({ candidateId, patch: { executionStatus: "failed" } }, 3);
      assert.deepEqual(await merging(scene, a, 987_654), { kind: "not_found", groupId: 987_654 });
      assert.deepEqual(await merging(scene, 987_654, b), { kind: "not_found", groupId: 987_654 });
      assert.equal((await merging(scene, a, a)).kind, "wrong_state");
      assert.equal((await merging(scene, a, b)).kind, "done");
      const again = await merging(scene, a, b);
      assert.deepEqual([again.kind, (again as { group: Group }).group.mergedInto], ["wrong_state", b]);
      const c = await groupOf(scene, "c", 1, 20);
      assert.equal((await merging(scene, c, a)).kind, "wrong_state", "into a group that is part of another");
      assert.equal(await countOf(scene, b), 2);
    }),
  );

  it(
    "the open candidate of a merged group ends: undecided rejected, approved skipped; approvals of both lapse",
    play(async (scene) => {
      const [one, two, into] = [await scene.open("one"), await scene.open("two"), await scene.open("into")];
      await scene.done({ candidateId: two.candidateId, patch: { decision: "approved" } }, 1);
      await merging(scene, one.groupId, into.groupId);
      await merging(scene, two.groupId, into.groupId);
      const after = await Promise.all([one, two, into].map(({ candidateId }) => scene.recovery.candidate(candidateId)));
      assert.deepEqual(
        after.map((candidate) => [candidate?.decision, candidate?.executionStatus]),
        [
          ["rejected", "pending"],
          ["approved", "skipped"],
          ["pending", "pending"],
        ],
      );
      const ids = async (current: boolean) =>
        (await scene.recovery.candidates({ limit: 9, current })).data.map(({ candidateId }) => candidateId);
      assert.deepEqual(await ids(true), [into.candidateId], "what was merged is not current");
      assert.deepEqual(await ids(false), [into.candidateId, two.candidateId, one.candidateId]);
      const lines = await scene.recovery.provenance({ candidateId: two.candidateId }, { limit: 5 });
      assert.deepEqual(
        lines.data.map(({ eventType, actor, actorType }) => [eventType, actor, actorType]),
        [
          ["skipped", "ann", "human"],
          ["created", "system", "system"],
        ],
      );
      const { candidateId } = into;
      const lapsed = await scene.recovery.write({ candidateId, groupVersion: 1, patch: {}, provenance: [], ...scene.at(20) });
      assert.equal(lapsed.kind, "group_changed");
      const old = { candidateId: one.candidateId, groupVersion: 1, patch: {}, provenance: [], ...scene.at(21) };
      assert.equal((await scene.recovery.write(old)).kind, "group_changed");
    }),
  );

  it(
    "a hold goes over with a merge, and the group rule and its line are in the same write",
    play(async (scene) => {
      const [one, two] = [await scene.open("slow"), await scene.open("refused")];
      await scene.done({ candidateId: one.candidateId, patch: { heldBy: "ann" } }, 1);
      const document = { kind: "group_rule", id: "r-1", text: "{}", version: 3, actor: "bo" } as const;
      const request = { from: one.groupId, into: two.groupId, provenance: [scene.line({ eventType: "merged" })], ...scene.at(2) };
      assert.deepEqual(await scene.recovery.merge({ ...request, document }), { kind: "version_conflict" });
      assert.equal((await scene.recovery.group(one.groupId))?.mergedInto, null);
      assert.equal((await scene.recovery.candidate(one.candidateId))?.decision, "pending");
      const done = await scene.recovery.merge({ ...request, document: { ...document, version: 0 } });
      assert.equal((done as { group: Group }).group.heldBy, "ann");
      assert.equal((await scene.recovery.documents.get("group_rule", "r-1"))?.version, 1);
      // By the candidate that it came with: what holds is the group that the other one became part of.
      await scene.done({ candidateId: one.candidateId, patch: { heldBy: null } }, 3);
      const { heldBy, version } = (await scene.recovery.group(two.groupId)) as Group;
      assert.deepEqual([heldBy, version], [null, (done as { group: Group }).group.version + 1]);
    }),
  );

  it(
    "a merged group is resolved only where both were: an open failure needs its suggestion",
    play(async (scene) => {
      const resolved = async (name: string) => {
        const groupId = await groupOf(scene, name, 1);
        await scene.recovery.resolveGroup(groupId, { actor: "ann", actorType: "human", reason: "mended" });
        return groupId;
      };
      const [mended, also, open] = [await resolved("slow"), await resolved("slower"), await groupOf(scene, "refused", 1)];
      const both = (await merging(scene, also, mended)) as { group: Group };
      assert.notEqual(both.group.resolvedAt, null);
      const mixed = (await merging(scene, open, mended)) as { group: Group };
      assert.equal(mixed.group.resolvedAt, null);
    }),
  );

  it(
    "R5: reports end up to the one that was decided about, those of a merged group too, and stay ended where they are split off",
    play(async (scene) => {
      const from = await groupOf(scene, "sluggish", 2, 1);
      const { candidateId, groupId } = await scene.open("slow", 2);
      assert.equal((await merging(scene, from, groupId)).kind, "done");
      const { open, through } = await scene.recovery.openReports(groupId, 10);
      assert.equal(open, 3);
      await groupOf(scene, "slow", 1, 11);
      const executing = { decision: "approved", executionStatus: "executing", executionId: "e" } as const;
      await scene.done({ candidateId, patch: { ...executing, reportsThrough: through } }, 12);
      await scene.done({ candidateId, patch: { executionStatus: "succeeded" } }, 13);
      const reports = async (id: number) => {
        const { data } = await scene.recovery.occurrences(id, { limit: 9 });
        return [(await scene.recovery.group(id))?.openReports, data.filter(({ openReport }) => openReport).length, data.length];
      };
      assert.deepEqual(await reports(groupId), [1, 1, 4]);
      const split = await scene.recovery.split({ groupId, identity: identity("very-slow"), provenance: [], ...scene.at(14) });
      const part = (split as { group: Group }).group.groupId;
      const all = (await scene.recovery.occurrences(groupId, { limit: 9 })).data.map(({ occurrenceId }) => occurrenceId);
      assert.equal(await scene.recovery.moveOccurrences(groupId, part, all, scene.at(15)), 4);
      assert.deepEqual(
        [await reports(groupId), await reports(part)],
        [
          [0, 0, 0],
          [1, 1, 4],
        ],
      );
    }),
  );
});

describe("groups: splits", () => {
  it(
    "a split makes a group and moves what belongs there with its count; moving again moves nothing",
    play(async (scene) => {
      const groupId = await groupOf(scene, "slow", 6, 5);
      const request = { groupId, identity: identity("very-slow", { groupRule: "r-1" }), ...scene.at(9) };
      const provenance = [scene.line({ groupId, eventType: "split" })];
      const made = await scene.recovery.split({ ...request, provenance });
      assert.equal(made.kind, "done");
      const { group } = made as { group: Group };
      assert.deepEqual([group.occurrenceCount, group.version, group.groupRule], [0, 1, "r-1"]);
      assert.equal((await scene.recovery.group(groupId))?.version, 2);
      assert.equal(await scene.recovery.candidateOf(group.groupId), null);
      const { data } = await scene.recovery.occurrences(groupId, { limit: 2 });
      const ids = data.map(({ occurrenceId }) => occurrenceId);
      const move = (from: number, to: number, which: number[]) => scene.recovery.moveOccurrences(from, to, which, scene.at(10));
      assert.equal(await move(groupId, group.groupId, [...ids, ids[0] as number, 987_654]), 2);
      assert.equal(await move(groupId, group.groupId, ids), 0);
      assert.deepEqual([await countOf(scene, groupId), await countOf(scene, group.groupId)], [4, 2]);
      const moved = (await scene.recovery.group(group.groupId)) as Group;
      assert.deepEqual([moved.firstAt, moved.lastAt], [scene.at(5).now, scene.at(5).now]);
      assert.equal((await scene.recovery.occurrences(group.groupId, { limit: 9 })).data.length, 2);
      assert.equal(await move(group.groupId, groupId, ids), 2, "and back");
      assert.deepEqual([await countOf(scene, groupId), await countOf(scene, group.groupId)], [6, 0]);
      assert.equal((await scene.recovery.stats([])).occurrences, 6);
    }),
  );

  it(
    "a split finds the group that is there; its first candidate comes with reopen or the next failure",
    play(async (scene) => {
      const groupId = await groupOf(scene, "slow", 2, 0);
      const split = (name: string) => scene.recovery.split({ groupId, identity: identity(name), provenance: [], ...scene.at(1) });
      const first = (await split("very-slow")) as { group: Group };
      const again = (await split("very-slow")) as { group: Group };
      assert.deepEqual([again.group.groupId, again.group.version], [first.group.groupId, 2]);
      assert.equal((await scene.recovery.group(groupId))?.version, 3);
      const candidate = await scene.recovery.reopen(first.group.groupId, scene.settings(2), []);
      assert.deepEqual([candidate?.round, candidate?.groupId], [1, first.group.groupId]);
      const [answer] = await scene.ingest(3, scene.failure("very-slow"));
      assert.deepEqual([answer?.candidateId, answer?.first], [candidate?.candidateId, false]);
      assert.equal((await split("slow")).kind, "wrong_state", "a group is not split into itself");
    }),
  );

  it(
    "what lies open moves along",
    play(async (scene) => {
      const ids = await scene.die(0, 2);
      const [{ groupId }] = (await scene.ingestDeaths(1, "slow", ids)) as [Ingested];
      const made = await scene.recovery.split({ groupId, identity: identity("very-slow"), provenance: [], ...scene.at(2) });
      const to = (made as { group: Group }).group.groupId;
      const { data } = await scene.recovery.occurrences(groupId, { limit: 1 });
      await scene.recovery.moveOccurrences(groupId, to, [data[0]?.occurrenceId as number], scene.at(3));
      const open = await Promise.all([groupId, to].map((id) => scene.recovery.group(id)));
      assert.deepEqual(
        open.map((group) => group?.openMessages),
        [1, 1],
      );
      assert.equal((await scene.recovery.groupOf({ messageId: data[0]?.message?.id as string }))?.groupId, to);
    }),
  );

  it(
    "an earlier death that moves leaves its message open where the last one was counted",
    play(async (scene) => {
      const ids = await scene.die(0);
      const [{ groupId }] = (await scene.ingestDeaths(1, "slow", ids)) as [Ingested];
      await scene.store.intervene({ id: ids[0] as string, action: "replay", actor: "ann", reason: null, ...scene.at(2) });
      await scene.attempt(3, ids, died("http_400", "refused"));
      const [last] = (await scene.ingestDeaths(4, "refused", ids)) as [Ingested];
      const made = await scene.recovery.split({ groupId, identity: identity("very-slow"), provenance: [], ...scene.at(5) });
      const to = (made as { group: Group }).group.groupId;
      const { data } = await scene.recovery.occurrences(groupId, { limit: 1 });
      assert.equal(await scene.recovery.moveOccurrences(groupId, to, [data[0]?.occurrenceId as number], scene.at(6)), 1);
      const open = await Promise.all([groupId, to, last.groupId].map((id) => scene.recovery.group(id)));
      assert.deepEqual(
        open.map((group) => [group?.occurrenceCount, group?.openMessages]),
        [
          [0, 0],
          [1, 0],
          [1, 1],
        ],
      );
    }),
  );

  it(
    "occurrences of merged groups can be moved out again",
    play(async (scene) => {
      const into = await groupOf(scene, "slow", 2, 0);
      const from = await groupOf(scene, "sluggish", 3, 1);
      await merging(scene, from, into);
      const made = await scene.recovery.split({ groupId: into, identity: identity("new"), provenance: [], ...scene.at(20) });
      const to = (made as { group: Group }).group.groupId;
      const { data } = await scene.recovery.occurrences(into, { limit: 9 });
      const ids = data.filter(({ groupId }) => groupId === from).map(({ occurrenceId }) => occurrenceId);
      assert.equal(await scene.recovery.moveOccurrences(into, to, ids, scene.at(21)), 3);
      assert.deepEqual([await countOf(scene, into), await countOf(scene, to)], [2, 3]);
      assert.equal(await scene.recovery.moveOccurrences(from, into, ids, scene.at(22)), 0, "both are the same group by now");
    }),
  );

  it(
    "a split is refused as a merge is, and changes nothing then",
    play(async (scene) => {
      const { groupId, candidateId } = await scene.open("slow");
      const document = { kind: "group_rule", id: "r-1", text: "{}", version: 1, actor: "bo" } as const;
      const request = { groupId, identity: identity("new"), provenance: [], ...scene.at(1) };
      assert.deepEqual(await scene.recovery.split({ ...request, document }), { kind: "version_conflict" });
      assert.deepEqual(await scene.recovery.split({ ...request, groupId: 987_654 }), { kind: "not_found", groupId: 987_654 });
      await scene.done({ candidateId, patch: { decision: "approved", executionStatus: "executing", executionId: "e" } }, 2);
      assert.equal((await scene.recovery.split(request)).kind, "wrong_state");
      assert.equal(await scene.recovery.groupOf({ fingerprint: identity("new").fingerprint }), null);
      assert.equal((await scene.recovery.group(groupId))?.version, 1);
      assert.equal(await scene.recovery.moveOccurrences(groupId, 987_654, [1], scene.at(3)), 0);
    }),
  );
});
