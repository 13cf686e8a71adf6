/**
 * Who may decide what: approvals of different people, for the group as it is, while they are fresh; and the moves of appendix E, which
 * nobody can leave.
 */
import { describe, expect, it } from "vitest";
import type { Candidate } from "../../../src/recovery/candidates/candidate.ts";
import { EXECUTION_STATUSES, handMoveRefusal } from "../../../src/recovery/candidates/candidate-state.ts";
import { approvalRefusal, standingOf } from "../../../src/recovery/candidates/found.ts";
import { ANN, BO, createScene, ROBOT, type Scene, times } from "./scene.ts";

const DAY_MS = 24 * 3_600_000;
const COMPENSATION = { compensation: { kind: "http", url: "https://undo.example" } } as const;

/** One candidate whose action needs two people. */
async function twoPeople(): Promise<{ scene: Scene; candidate: Candidate }> {
  const scene = await createScene(COMPENSATION);
  const { candidateId } = await scene.timeout();
  const candidate = await scene.engine.update(candidateId, { ...ANN, selectedAction: "rollback_state" });
  return { scene, candidate };
}

/** What happens after the next reader looked and before it writes. */
function between(scene: Scene, happens: () => Promise<void>): void {
  const { write } = scene.recovery;
  const once = scene.recovery as { write: typeof write };
  once.write = async (given) => {
    once.write = write;
    await happens();
    return write(given);
  };
}

async function mergeAnother(scene: Scene, groupId: number): Promise<void> {
  await scene.die(["the journal is closed since noon"]);
  const other = (await scene.engine.groups({ limit: 10 })).data.find((group) => group.groupId !== groupId);
  await scene.engine.merge(groupId, [other?.groupId ?? 0], "the same", BO);
}

describe("approval", () => {
  it("that lapsed because the group changed does not stand again after the next evaluation", async () => {
    const { scene, candidate } = await twoPeople();
    const { candidateId, groupId } = candidate;
    await scene.engine.approve(candidateId, ANN);
    await scene.die(["the journal is closed since noon"], { code: "TIMEOUT" });
    const { data } = await scene.engine.groups({ limit: 10 });
    const other = data.find((group) => group.groupId !== groupId)?.groupId ?? 0;
    await scene.engine.merge(groupId, [other], "the same", BO);
    expect(await scene.engine.candidate(candidateId)).toMatchObject({ lapsed: true, approvalsMissing: 2 });
    // More of the same come in, and the candidate is evaluated anew: Ann never saw the group as it is now.
    await scene.die(Array.from({ length: 9 }, (_, i) => `no answer within ${5_000 + i} ms`));
    await scene.work();
    const { approvalsMissing, provenance } = await scene.engine.candidate(candidateId, { provenance: true });
    expect(approvalsMissing).toBe(2);
    expect(provenance).toContainEqual(expect.objectContaining({ eventType: "approval_lapsed", reason: "the group changed" }));
  });

  it("EV-49: what is risky is not executed before a person has approved, what is safe is", async () => {
    const scene = await createScene({ fallback: { kind: "http", url: "https://other.example" } });
    const { candidateId } = await scene.timeout();
    expect(await scene.engine.candidate(candidateId)).toMatchObject({ approvalsMissing: 0 });
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "fallback_model" });
    expect(await scene.engine.candidate(candidateId)).toMatchObject({ approvalsMissing: 1, lapsed: false });
    await expect(scene.engine.execute(candidateId, ANN)).rejects.toMatchObject({ code: "approval_needed" });
    expect(await scene.engine.approve(candidateId, { ...ANN, reason: "looked at it" })).toMatchObject({
      decision: "approved",
      approvals: [{ actor: "ann", note: "looked at it" }],
    });
    expect(await scene.engine.execute(candidateId, ANN)).toMatchObject({ executionStatus: "executing", executedBy: "ann" });
  });

  it("two people are two names: the same one twice, the system and an agent do not count", async () => {
    const { scene, candidate } = await twoPeople();
    const { candidateId } = candidate;
    await scene.engine.approve(candidateId, ANN);
    expect(await scene.engine.approve(candidateId, ANN)).toMatchObject({ decision: "pending", approvals: [{ actor: "ann" }] });
    for (const by of [
      ROBOT,
      { actor: "system", actorType: "system" } as const,
      { actor: "system", actorType: "human" } as const,
    ]) {
      await expect(scene.engine.approve(candidateId, by)).rejects.toMatchObject({ code: "approval_needed" });
    }
    await expect(scene.engine.execute(candidateId, ANN)).rejects.toMatchObject({
      code: "approval_needed",
      detail: { missing: 1 },
    });
    const both = await scene.engine.approve(candidateId, BO);
    expect(both).toMatchObject({ decision: "approved", approvals: [{ actor: "ann" }, { actor: "bo" }] });
    // Pressed once more it takes nobody's approval away.
    expect(await scene.engine.approve(candidateId, ANN)).toEqual(both);
    expect(await scene.engine.execute(candidateId, ANN)).toMatchObject({ executionStatus: "executing" });
  });

  it("two people who approve at the same moment both count; a named version counts once", async () => {
    const { scene, candidate } = await twoPeople();
    const { candidateId } = candidate;
    const [one, other] = await Promise.all([scene.engine.approve(candidateId, ANN), scene.engine.approve(candidateId, BO)]);
    expect([one.decision, other.decision].sort()).toEqual(["approved", "pending"]);
    const next = await twoPeople();
    const { version, candidateId: id } = next.candidate;
    const both = await Promise.allSettled([ANN, BO].map((by) => next.scene.engine.approve(id, { ...by, version })));
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });

  it("EV-50: it lapses when the group changes, is taken back on record, and must be given again", async () => {
    const { scene, candidate } = await twoPeople();
    const { candidateId, groupId } = candidate;
    await scene.engine.approve(candidateId, ANN);
    await scene.engine.approve(candidateId, BO);
    await scene.die(["something else entirely"], { code: "E_OTHER" });
    const { data } = await scene.engine.groups({ limit: 10, errorCode: "E_OTHER" });
    await scene.engine.merge(groupId, [data[0]?.groupId ?? 0], "the same outage", ANN);
    expect(await scene.engine.candidate(candidateId)).toMatchObject({ lapsed: true, approvalsMissing: 2 });
    await expect(scene.engine.execute(candidateId, ANN)).rejects.toMatchObject({
      code: "approval_needed",
      detail: { lapsed: true },
    });
    expect((await scene.engine.candidate(candidateId)).candidate).toMatchObject({ decision: "pending", approvals: [] });
    expect(await scene.engine.approve(candidateId, BO)).toMatchObject({ decision: "pending", approvals: [{ actor: "bo" }] });
    expect(await scene.engine.approve(candidateId, ANN)).toMatchObject({ decision: "approved" });
    const events = (await scene.engine.provenance({ candidateId }, { limit: 50 })).data.map(({ eventType }) => eventType);
    expect(events).toContain("approval_lapsed");
  });

  it("EV-50: it lapses after a day, and the same person may give it anew", async () => {
    const scene = await createScene(COMPENSATION);
    const { candidateId } = await scene.timeout();
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "skip_task" });
    await scene.engine.approve(candidateId, ANN);
    await scene.clock.advance(DAY_MS - 1);
    expect(await scene.engine.candidate(candidateId)).toMatchObject({ lapsed: false, approvalsMissing: 0 });
    await scene.clock.advance(1);
    await expect(scene.engine.execute(candidateId, ANN)).rejects.toMatchObject({ code: "approval_needed" });
    await scene.engine.approve(candidateId, ANN);
    expect(await scene.engine.execute(candidateId, ANN)).toMatchObject({ executionStatus: "executing" });
  });

  it("it is for one action: another one begins without approvals", async () => {
    const { scene, candidate } = await twoPeople();
    await scene.engine.approve(candidate.candidateId, ANN);
    await scene.engine.approve(candidate.candidateId, BO);
    const after = await scene.engine.update(candidate.candidateId, { ...ANN, selectedAction: "skip_task" });
    expect(after).toMatchObject({ selectedAction: "skip_task", decision: "pending", approvals: [] });
  });

  it("what was approved is not evaluated again before it is executed", async () => {
    const scene = await createScene();
    const { candidateId, evaluations } = await scene.timeout();
    await scene.engine.approve(candidateId, ANN);
    await scene.die(Array.from({ length: 12 }, (_, i) => `no answer within ${i} ms`));
    expect(await scene.work()).toEqual([]);
    expect(await scene.candidate()).toMatchObject({
      candidateId,
      evaluations,
      decision: "approved",
      evaluationStatus: "evaluated",
    });
  });

  it("an evaluation that comes to something else takes back what was given so far", async () => {
    const scene = await createScene();
    await scene.engine.putAction("retry_exponential", `{"approval":"two"}`, 0, ANN);
    const { candidateId, groupId } = await scene.timeout();
    expect(await scene.engine.approve(candidateId, ANN)).toMatchObject({ decision: "pending", approvals: [{ actor: "ann" }] });
    expect(await scene.engine.suggest(groupId, BO)).toMatchObject({
      selectedAction: "retry_exponential",
      approvals: [{ actor: "ann" }],
    });
    await scene.recovery.learn(times(9, { groupId, action: "retry_exponential", healed: 0, failed: 1 }));
    await scene.recovery.learn(times(8, { groupId, action: "notify_ops", healed: 1, failed: 0 }));
    expect(await scene.engine.suggest(groupId, BO)).toMatchObject({ selectedAction: "notify_ops", approvals: [] });
  });

  it("EV-49: what is forbidden or disabled is neither approved nor executed", async () => {
    const scene = await createScene();
    const { candidateId } = await scene.timeout();
    await scene.engine.putAction("retry_exponential", `{"risk":"forbidden"}`, 0, ANN);
    await expect(scene.engine.approve(candidateId, ANN)).rejects.toMatchObject({ code: "action_refused" });
    await expect(scene.engine.execute(candidateId, ANN)).rejects.toMatchObject({ code: "action_refused" });
    await scene.engine.putAction("retry_exponential", `{"enabled":false}`, 1, ANN);
    await expect(scene.engine.execute(candidateId, ANN)).rejects.toMatchObject({ code: "action_refused" });
    const other = await scene.engine.update(candidateId, { ...ANN, selectedAction: "notify_ops" });
    for (const [version, settings] of [`{"risk":"forbidden"}`, `{"enabled":false}`].entries()) {
      await scene.engine.putAction("skip_task", settings, version, ANN);
      const chosen = scene.engine.update(candidateId, { ...ANN, selectedAction: "skip_task" });
      await expect(chosen, settings).rejects.toMatchObject({ code: "action_refused" });
    }
    expect(await scene.candidate()).toEqual(other);
  });

  it("is pure about who is missing", () => {
    const at = new Date(1_000);
    const approvals = [
      { actor: "ann", at, note: null, occurrenceCount: 30 },
      { actor: "system", at, note: null, occurrenceCount: 1 },
    ];
    const given = (approval: "none" | "one" | "two", risk: "safe" | "risky", version = 1, occurrences = 30) =>
      standingOf(
        { approvals, groupVersion: 1 },
        { version, occurrenceCount: occurrences },
        { approval, risk },
        { nowMs: 2_000, approvalMs: 5_000 },
      );
    expect(given("none", "safe").missing).toBe(0);
    // Of an action that nobody knows nobody can say that it needs no one.
    const clock = { nowMs: 2_000, approvalMs: 5_000 };
    expect(standingOf({ approvals: [], groupVersion: 1 }, { version: 1, occurrenceCount: 1 }, null, clock)).toMatchObject({
      needed: 1,
      missing: 1,
    });
    expect(given("none", "risky")).toMatchObject({ needed: 1, missing: 0 });
    expect(given("two", "risky")).toMatchObject({ needed: 2, missing: 1, lapsed: false });
    expect(given("one", "safe", 2)).toMatchObject({ missing: 1, lapsed: true });
    expect(approvalRefusal(7, given("two", "safe"))).toContain("two different people");
    expect(given("one", "safe", 1, 33)).toMatchObject({ missing: 0, lapsed: false, lapsedReason: null });
    expect(given("one", "safe", 1, 34)).toMatchObject({ missing: 1, lapsed: true });
    expect(approvalRefusal(7, given("one", "safe", 1, 34))).toContain("had 30 failures then and has 34 now");
  });
});

describe("an approval is about what was seen", () => {
  it("lapses when more than a tenth came to the group since, for both people, and says both numbers", async () => {
    const scene = await createScene({ compensation: { kind: "http", url: "https://pay.example/undo" } });
    const { candidateId } = await scene.timeout(20);
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "rollback_state" });
    const approved = await scene.engine.approve(candidateId, ANN);
    expect(approved.approvals).toMatchObject([{ actor: "ann", occurrenceCount: 20 }]);
    await scene.die(["no answer within 5 ms", "no answer within 6 ms"]);
    await scene.engine.approve(candidateId, BO);
    expect(await scene.engine.candidate(candidateId)).toMatchObject({ lapsed: false, lapsedReason: null, approvalsMissing: 0 });
    // One more is little beside Bo's 22, but three are not beside what Ann saw.
    await scene.die(["no answer within 7 ms"]);
    const why = "its group had 20 failures then and has 23 now";
    expect(await scene.engine.candidate(candidateId)).toMatchObject({ lapsed: true, lapsedReason: why, approvalsMissing: 2 });
    await expect(scene.engine.execute(candidateId, ANN)).rejects.toMatchObject({
      code: "approval_needed",
      message: expect.stringContaining(why),
    });
    expect(await scene.candidate()).toMatchObject({ decision: "pending", approvals: [] });
    for (const by of [ANN, BO]) await scene.engine.approve(candidateId, by);
    expect((await scene.engine.execute(candidateId, ANN)).executionStatus).toBe("executing");
  });

  it("of a group that changes between the look and the write is for the group as it has become", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.timeout();
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "skip_task" });
    between(scene, () => mergeAnother(scene, groupId));
    expect(await scene.engine.approve(candidateId, ANN)).toMatchObject({ decision: "approved", groupVersion: 2 });
    expect(await scene.engine.candidate(candidateId)).toMatchObject({ lapsed: false, approvalsMissing: 0 });
  });

  it("EV-50: does not begin on a group that changed between the look and the claim", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.timeout();
    between(scene, () => mergeAnother(scene, groupId));
    await expect(scene.engine.execute(candidateId, ANN)).rejects.toMatchObject({ code: "version_conflict" });
    expect(await scene.candidate()).toMatchObject({ executionStatus: "pending", executionId: null });
    expect((await scene.engine.redrives({ limit: 10 })).data).toEqual([]);
  });

  it("a claim from outside of a group that changes meanwhile is for the group as it has become", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.engine.ingest(scene.report(), ANN);
    await scene.work();
    between(scene, () => mergeAnother(scene, groupId));
    // What was merged into it is ours: from then on it is executed here.
    const message = expect.stringContaining("1 open dead letters of ours");
    await expect(scene.engine.claim(candidateId, ANN)).rejects.toMatchObject({ code: "action_refused", message });
    expect((await scene.engine.candidate(candidateId)).candidate).toMatchObject({
      executionStatus: "pending",
      executionId: null,
    });
  });

  it("a claim from outside of a group that is held waits for its release", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.engine.ingest(scene.report(), ANN);
    await scene.work();
    await scene.recovery.write({ candidateId, patch: { heldBy: "operators" }, provenance: [] });
    const message = expect.stringContaining("held for operators");
    await expect(scene.engine.claim(candidateId, ANN)).rejects.toMatchObject({ code: "action_refused", message });
    await scene.engine.release(groupId, ANN);
    expect(await scene.engine.claim(candidateId, ANN)).toMatchObject({ executionStatus: "executing" });
  });

  it("approving again after it grew takes the old ones back, on record", async () => {
    const scene = await createScene();
    const { candidateId } = await scene.timeout(4);
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "skip_task" });
    await scene.engine.approve(candidateId, ANN);
    await scene.die(["no answer within 5 ms"]);
    const { approvals } = await scene.engine.approve(candidateId, BO);
    expect(approvals).toMatchObject([{ actor: "bo", occurrenceCount: 5 }]);
    const { data } = await scene.engine.provenance({ candidateId }, { limit: 20 });
    expect(data.find(({ eventType }) => eventType === "approval_lapsed")?.reason).toBe(
      "its group had 4 failures then and has 5 now",
    );
  });
});

describe("rejection", () => {
  it("ends a candidate; the group rests a day, or until a person asks", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.timeout();
    const rejected = await scene.engine.reject(candidateId, { ...ANN, reason: "known" });
    expect(rejected.decision).toBe("rejected");
    expect(await scene.engine.reject(candidateId, ANN)).toMatchObject({ version: rejected.version });
    await expect(scene.engine.approve(candidateId, ANN)).rejects.toMatchObject({ code: "wrong_state" });
    await expect(scene.engine.execute(candidateId, ANN)).rejects.toMatchObject({ code: "wrong_state" });
    await scene.clock.advance(DAY_MS - 60_000);
    await scene.die(["no answer within 5 ms"]);
    expect(await scene.candidate()).toMatchObject({ candidateId });
    await scene.clock.advance(60_000);
    await scene.die(["no answer within 5 ms"]);
    expect(await scene.candidate()).toMatchObject({ round: 2, decision: "pending" });
    await scene.engine.reject((await scene.candidate()).candidateId, ANN);
    expect(await scene.engine.suggest(groupId, ANN)).toMatchObject({ round: 3, evaluationStatus: "evaluated" });
  });

  it("is of the version that was seen, and not of what was begun", async () => {
    const scene = await createScene();
    const { candidateId, version } = await scene.timeout();
    await scene.engine.update(candidateId, { ...BO, note: "look at this" });
    await expect(scene.engine.reject(candidateId, { ...ANN, version })).rejects.toMatchObject({ code: "version_conflict" });
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "notify_ops" });
    await scene.engine.execute(candidateId, ANN);
    await expect(scene.engine.reject(candidateId, ANN)).rejects.toMatchObject({ code: "wrong_state" });
    const other = scene.engine.update(candidateId, { ...ANN, selectedAction: "retry_exponential" });
    await expect(other, "nor is its action chosen anew").rejects.toMatchObject({ code: "wrong_state" });
    expect(await scene.candidate()).toMatchObject({
      decision: "approved",
      executionStatus: "succeeded",
      selectedAction: "notify_ops",
    });
  });

  it("does not fall on what was executed between the look and the write", async () => {
    const scene = await createScene();
    const { candidateId } = await scene.timeout();
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "notify_ops" });
    between(scene, async () => void (await scene.engine.execute(candidateId, BO)));
    await expect(scene.engine.reject(candidateId, ANN)).rejects.toMatchObject({ code: "wrong_state" });
    expect(await scene.candidate()).toMatchObject({ decision: "approved", executionStatus: "succeeded" });
  });
});

describe("DR-33: a status that a person writes", () => {
  it("is one of five moves and no other", () => {
    const allowed = EXECUTION_STATUSES.flatMap((from) =>
      [...EXECUTION_STATUSES, "__proto__", "constructor", "done"]
        .filter((to) => handMoveRefusal(1, from, to) === null)
        .map((to) => `${from} → ${to}`),
    );
    expect(allowed).toEqual([
      "pending → skipped",
      "succeeded → rolled_back",
      "failed → rolled_back",
      "unknown → succeeded",
      "unknown → failed",
    ]);
  });

  it("is refused with what would be allowed, and changes nothing", async () => {
    const scene = await createScene();
    const { candidateId, version } = await scene.timeout();
    for (const executionStatus of ["executing", "succeeded", "failed", "rolled_back", "unknown", "pending", "deleted"]) {
      const refused = scene.engine.update(candidateId, { ...ANN, executionStatus });
      await expect(refused, executionStatus).rejects.toMatchObject({ code: "wrong_state" });
    }
    expect((await scene.candidate()).version).toBe(version);
    await expect(
      scene.engine.update(candidateId, { ...ANN, executionStatus: "skipped", version: version - 1 }),
    ).rejects.toMatchObject({
      code: "version_conflict",
    });
    expect(await scene.engine.update(candidateId, { ...ANN, executionStatus: "skipped", version })).toMatchObject({
      executionStatus: "skipped",
    });
  });

  it("without a version it is written although another writes at the same moment", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.timeout();
    await Promise.all([
      scene.engine.suggest(groupId, BO),
      // An evaluation is tried five times: with the owner these are four.
      ...Array.from({ length: 3 }, (_, i) => scene.engine.update(candidateId, { ...ANN, note: `n${i}` })),
      scene.engine.update(candidateId, { ...ANN, owner: "bo" }),
    ]);
    expect(await scene.candidate()).toMatchObject({
      owner: "bo",
      note: expect.stringMatching(/^n/),
      evaluationStatus: "evaluated",
    });
  });

  it("is not written over an execution that began between the look and the write", async () => {
    const scene = await createScene();
    const { candidateId } = await scene.timeout();
    between(scene, async () => void (await scene.engine.execute(candidateId, BO)));
    const skipped = scene.engine.update(candidateId, { ...ANN, executionStatus: "skipped" });
    await expect(skipped).rejects.toMatchObject({ code: "wrong_state" });
    expect(await scene.candidate()).toMatchObject({ executionStatus: "executing", redriveId: expect.any(String) });
  });

  it("an action that does not exist is refused, owner and note are kept", async () => {
    const scene = await createScene();
    const { candidateId } = await scene.timeout();
    const wrong = scene.engine.update(candidateId, { ...ANN, selectedAction: "reboot" });
    await expect(wrong).rejects.toMatchObject({ code: "action_not_found" });
    expect(await scene.engine.update(candidateId, { ...ANN, owner: "bo", note: "look at the gateway" })).toMatchObject({
      owner: "bo",
      note: "look at the gateway",
    });
    await expect(scene.engine.update(12_345, { ...ANN, note: "x" })).rejects.toMatchObject({ code: "candidate_not_found" });
  });
});
