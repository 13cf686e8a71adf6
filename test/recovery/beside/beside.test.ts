/**
 * Decision 0033 on a real Redis and a real PostgreSQL: dead letters of Redis are grouped, suggested for, executed and learned from as those
 * of PostgreSQL are, and what ends on one side ends on the other.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { FailureReport } from "../../../src/recovery/recovery.ts";
import { ANN, ended, inPrimary, PATIENCE, refuse, type Scene, scene, send, suggested, TOPIC } from "./scene.ts";

vi.setConfig({ testTimeout: 120_000 });
let at: Scene;
beforeEach(async () => {
  at = await scene();
});
afterEach(() => at.close());

describe("recovery beside Redis", () => {
  it("groups dead letters by kind, suggests, heals them in Redis, and learns from it", async () => {
    at.receiver.answer = (n) => (n % 2 === 0 ? refuse("http_429", "slow down please") : refuse("http_401", "token expired"));
    const mg = await at.open();
    mg.work();
    const ids = await send(mg, 10);
    const limited = await suggested(mg.recovery, "http_429", 5);
    const expired = await suggested(mg.recovery, "http_401", 5);
    expect([limited.groupId === expired.groupId, limited.selectedAction]).toEqual([false, "retry_exponential"]);
    at.receiver.answer = () => undefined;
    await mg.recovery.execute(limited.candidateId, { ...ANN, reason: "it is well again" });
    await ended(mg.recovery, limited.candidateId, "succeeded");
    const healed = (await inPrimary(mg, ids)).filter((_, n) => n % 2 === 0);
    expect(healed.map(({ status, generation }) => [status, generation])).toEqual(healed.map(() => ["delivered", 1]));
    expect(at.receiver.delivered.sort((a, b) => a - b)).toEqual([0, 2, 4, 6, 8]);
    const { provenance } = await mg.store.history(ids[0] as string);
    expect(provenance).toMatchObject([{ action: "replay", actor: "ann" }]);
    const { candidate } = await mg.recovery.candidate(limited.candidateId);
    expect(JSON.parse(candidate.executionResult as string)).toMatchObject({ counts: { healed: 5, failed: 0 } });
    expect((await mg.recovery.group(limited.groupId)).group.openMessages).toBe(0);
    expect((await mg.recovery.group(expired.groupId)).group.openMessages).toBe(5);
    const known = await mg.recovery.evaluate({ errorCode: "http_429", errorMessage: "slow down please", topic: TOPIC });
    expect(JSON.stringify(known.evaluation)).toContain("retry_exponential");
  });

  it("counts a second death after the replay as a failure of the execution, in the group where it belongs", async () => {
    at.receiver.answer = () => refuse("http_429", "slow down please");
    const mg = await at.open();
    mg.work();
    const ids = await send(mg, 3);
    const { candidateId } = await suggested(mg.recovery, "http_429", 3);
    at.receiver.answer = () => refuse("schema_gone", "there is no such table");
    await mg.recovery.execute(candidateId, { ...ANN, reason: "try" });
    await ended(mg.recovery, candidateId, "failed");
    expect((await inPrimary(mg, ids)).map(({ status, generation }) => [status, generation])).toEqual(ids.map(() => ["dead", 1]));
    await suggested(mg.recovery, "schema_gone", 3);
    expect((await mg.recovery.groups({ errorCode: "http_429", open: true, limit: 5 })).data).toEqual([]);
  });

  it("closes what was resolved, discarded or replayed by hand in Redis, and Redis what recovery resolved", async () => {
    at.receiver.answer = () => refuse("broken", "it is broken");
    const mg = await at.open();
    mg.work();
    const ids = await send(mg, 6);
    const [resolved, discarded, replayed, again] = ids as [string, string, string, string];
    const { groupId } = await suggested(mg.recovery, "broken", 6);
    await mg.resolve(resolved, { actor: "bob", reason: "done by telephone" });
    await mg.discard(discarded, { actor: "bob", reason: "not wanted" });
    at.receiver.answer = (n) => (n === 3 ? refuse("broken", "it is broken") : undefined);
    await mg.replay(replayed, { actor: "bob" });
    await mg.replay(again, { actor: "bob" });
    await suggested(mg.recovery, "broken", 3);
    await vi.waitFor(async () => expect((await mg.recovery.group(groupId)).group.occurrenceCount).toBe(7), PATIENCE);
    await mg.recovery.resolveGroup(groupId, { ...ANN, reason: "written off", messages: "resolve" });
    await vi.waitFor(async () => {
      const left = await inPrimary(mg, ids.slice(3));
      expect(left.map(({ status, resolution }) => [status, resolution])).toEqual(left.map(() => ["dead", "resolved"]));
    }, PATIENCE);
    expect((await mg.store.history(again)).provenance.at(-1)).toMatchObject({
      action: "resolve",
      actor: "ann",
      reason: "written off",
    });
  });

  it("redrives by topic, under a new key as well, and refuses what Redis cannot do", async () => {
    at.receiver.answer = () => refuse("broken", "it is broken");
    const mg = await at.open();
    mg.work();
    const ids = await send(mg, 4);
    await suggested(mg.recovery, "broken", 4);
    at.receiver.answer = () => undefined;
    const asked = { select: { topic: TOPIC }, reason: "once more", mode: "new_key", canary: 0 } as const;
    const { redrive } = await mg.recovery.startRedrive(asked, ANN);
    await vi.waitFor(async () => expect((await mg.recovery.redrive(redrive.redriveId)).status).toBe("done"), PATIENCE);
    expect((await mg.recovery.redrive(redrive.redriveId)).counts).toMatchObject({ healed: 4, failed: 0 });
    expect(at.receiver.delivered.sort((a, b) => a - b)).toEqual([0, 1, 2, 3]);
    await vi.waitFor(async () => {
      expect((await inPrimary(mg, ids)).map(({ resolution }) => resolution)).toEqual(ids.map(() => "resolved"));
    }, PATIENCE);
    const edit = mg.recovery.edit(ids[0] as string, { ...ANN, payload: "{}", reason: "typo" });
    await expect(edit).rejects.toMatchObject({ code: "needs_postgres" });
    const reopen = mg.recovery.startRedrive({ select: { redriveId: redrive.redriveId }, reason: "no", mode: "reopen" }, ANN);
    await expect(reopen).rejects.toMatchObject({ code: "needs_postgres" });
  });

  it("opens the breaker of Redis, and closes it when that is rolled back", async () => {
    at.receiver.answer = () => refuse("http_503", "service unavailable");
    const mg = await at.open();
    mg.work();
    await send(mg, 2);
    const { candidateId, selectedAction } = await suggested(mg.recovery, "http_503", 2);
    expect(selectedAction).toBe("circuit_breaker");
    await mg.recovery.approve(candidateId, { ...ANN, reason: "leave it alone" });
    await mg.recovery.execute(candidateId, { ...ANN, reason: "leave it alone" });
    expect((await mg.store.topics.get(TOPIC))?.breaker).toMatchObject({ state: "open", reason: expect.stringContaining("ann") });
    const { redriveId } = (await mg.recovery.candidate(candidateId)).candidate;
    await mg.recovery.cancelRedrive(redriveId as string, { ...ANN, reason: "it is well" });
    await ended(mg.recovery, candidateId, "failed");
    await mg.recovery.update(candidateId, { ...ANN, executionStatus: "rolled_back", reason: "it is well" });
    expect((await mg.store.topics.get(TOPIC))?.breaker.state).toBe("closed");
  });

  it("groups a message of Redis that fails often before it is dead, and counts its death no second time", async () => {
    at.receiver.answer = () => ({ kind: "retry", code: "slow", error: "not yet", retryAfterMs: 3_600_000 });
    const mg = await at.open({ recovery: { failingOften: 1 } });
    mg.work();
    await vi.waitFor(() => expect(mg.recoveryBeside()?.behind).toBe(0), PATIENCE);
    const [id] = await send(mg, 1);
    const counted = (openMessages: number) =>
      vi.waitFor(async () => {
        const { data } = await mg.recovery.groups({ limit: 5 });
        expect(data).toMatchObject([{ errorCode: "slow", occurrenceCount: 1, openMessages }]);
      }, PATIENCE);
    await counted(0);
    await mg.reschedule(id as string, { actor: "bob", delayMs: 0 });
    await counted(1);
  });

  it("takes failures from outside and sends them again through a topic of Redis", async () => {
    const mg = await at.open();
    mg.work();
    const report: FailureReport = {
      ...{
        failureMatchId: null,
        idempotencyKey: "report-1",
        source: "api" as const,
        topic: "other/service",
        sink: null,
        errorCode: "timeout",
      },
      ...{ errorMessage: "it took too long", stackTrace: null, skillId: null, tenantId: null, failurePayload: '{"n": 77}' },
      ...{ enqueueEvaluation: true, redriveTopic: TOPIC },
    };
    const { candidateId } = await vi.waitFor(() => mg.recovery.ingest(report, ANN), PATIENCE);
    await vi.waitFor(async () => {
      expect((await mg.recovery.candidate(candidateId)).candidate.evaluationStatus).toBe("evaluated");
    }, PATIENCE);
    await mg.recovery.update(candidateId, { ...ANN, selectedAction: "retry_exponential" });
    await mg.recovery.execute(candidateId, { ...ANN, reason: "again" });
    await ended(mg.recovery, candidateId, "succeeded");
    expect(at.receiver.delivered).toEqual([77]);
  });
});
