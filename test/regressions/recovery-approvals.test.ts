/**
 * Approvals that were lost and evaluations that never ended (R15), on PostgreSQL.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMakegood, type Makegood } from "../../src/index.ts";
import type { Recovery } from "../../src/recovery/recovery.ts";
import { dropSchema, freshSchema, openStore, withClient } from "../support/postgres.ts";

const schema = freshSchema();
const ANN = { actor: "ann", actorType: "human" } as const;
const BO = { actor: "bo", actorType: "human" } as const;
let mg: Makegood;
let recovery: Recovery;

beforeAll(async () => {
  mg = await createMakegood({ store: await openStore({ schema }), topics: [] });
  recovery = mg.recovery as Recovery;
});
afterAll(async () => {
  await mg.close();
  await dropSchema(schema);
});

const report = (errorCode: string) => ({
  ...{ failureMatchId: null, idempotencyKey: null, source: "api" as const, topic: null, sink: null, errorCode },
  ...{ errorMessage: "it did not work", stackTrace: null, skillId: null, tenantId: null, failurePayload: "{}" },
  enqueueEvaluation: true,
});

/** A group whose suggestion needs two people. */
async function suggested(errorCode: string): Promise<number> {
  const { candidateId, groupId } = await recovery.ingest(report(errorCode), ANN);
  await recovery.suggest(groupId, ANN);
  await recovery.update(candidateId, { ...ANN, selectedAction: "rollback_state" });
  return candidateId;
}

const names = async (candidateId: number) =>
  (await recovery.candidate(candidateId)).candidate.approvals.map(({ actor }) => actor);

const age = (candidateId: number, actor: string) =>
  withClient((client) =>
    client.query(`update "${schema}".recovery_approval set at = at - interval '30 days' where candidate_id = $1 and actor = $2`, [
      candidateId,
      actor,
    ]),
  );

describe("R15: approvals", () => {
  it("who approves again after their own approval lapsed leaves the other person's as it is", async () => {
    const id = await suggested("E_LAPSE");
    await recovery.approve(id, ANN);
    await recovery.approve(id, BO);
    await age(id, "ann");
    expect(await recovery.candidate(id)).toMatchObject({ lapsed: true, approvalsMissing: 1 });
    const again = await recovery.approve(id, { ...ANN, reason: "still right" });
    expect(again.decision).toBe("approved");
    expect((await names(id)).sort()).toEqual(["ann", "bo"]);
    expect(await recovery.candidate(id)).toMatchObject({ lapsed: false, approvalsMissing: 0 });
  });

  it("what does not stand any more goes with the next approval, and only that", async () => {
    const id = await suggested("E_OTHER");
    await recovery.approve(id, ANN);
    await age(id, "ann");
    expect((await recovery.approve(id, BO)).decision).toBe("pending");
    expect(await names(id)).toEqual(["bo"]);
    expect(await recovery.candidate(id)).toMatchObject({ lapsed: false, approvalsMissing: 1 });
  });
});

describe("R15: an approval while the candidate is evaluated", () => {
  it.each(["approve", "reject"] as const)("%s ends the evaluation: what was evaluated before stands", async (decide) => {
    const { candidateId, groupId } = await recovery.ingest(report(`E_${decide}`), ANN);
    await recovery.suggest(groupId, ANN);
    const off = recovery.on("on_evaluation_start", async ({ candidate }) => {
      if (candidate.candidateId === candidateId) await recovery[decide](candidateId, ANN);
    });
    await recovery.suggest(groupId, ANN).finally(off);
    const { candidate } = await recovery.candidate(candidateId);
    const decision = decide === "approve" ? "approved" : "rejected";
    expect(candidate).toMatchObject({ decision, evaluationStatus: "evaluated" });
  });

  it("a candidate that was rejected during its first evaluation was never evaluated", async () => {
    const { candidateId, groupId } = await recovery.ingest(report("E_FIRST"), ANN);
    const off = recovery.on("on_evaluation_start", async ({ candidate }) => {
      if (candidate.candidateId === candidateId) await recovery.reject(candidateId, ANN);
    });
    await recovery.suggest(groupId, ANN).finally(off);
    const { candidate } = await recovery.candidate(candidateId);
    expect(candidate).toMatchObject({ decision: "rejected", evaluationStatus: "unevaluated", evaluatedAt: null });
  });
});
