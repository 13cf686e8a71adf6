/**
 * From a failure to a suggestion: queued, claimed, judged, on record. Whatever is delivered twice, fails in between or is thrown by a hook,
 * a candidate ends evaluated or failed, never in between.
 */
import { describe, expect, it } from "vitest";
import { RECOVERY_TOPIC } from "../../../src/recovery/topics.ts";
import { ANN, createScene, type Scene, times } from "./scene.ts";

const events = async (scene: Scene, candidateId: number): Promise<string[]> =>
  (await scene.engine.provenance({ candidateId }, { limit: 100 })).data.map(({ eventType }) => eventType).reverse();

describe("an evaluation", () => {
  it("DR-50: what is ingested is evaluated, by way of the topic and nothing else", async () => {
    const scene = await createScene();
    await scene.die(["no answer within 20 ms"]);
    expect(await scene.candidate()).toMatchObject({ evaluationStatus: "unevaluated", selectedAction: null, evaluatedAt: null });
    expect(await scene.work()).toEqual(["delivered"]);
    const candidate = await scene.candidate();
    expect(candidate).toMatchObject({
      evaluationStatus: "evaluated",
      selectedAction: "retry_exponential",
      confidence: 0.85,
      decision: "pending",
    });
    expect(await events(scene, candidate.candidateId)).toEqual(["created", "rule_evaluated", "action_selected"]);
    const [selected] = (await scene.engine.provenance({ candidateId: candidate.candidateId }, { limit: 1 })).data;
    expect(selected).toMatchObject({
      actorType: "system",
      action: "retry_exponential",
      ruleId: "cause_late",
      confidenceBefore: null,
      confidenceAfter: 0.85,
      durationMs: expect.any(Number),
    });
  });

  it("EV-49: leaves a decision record with every rule's contribution, and why it does not run by itself", async () => {
    const scene = await createScene();
    const { evaluation } = await scene.timeout();
    const record = JSON.parse(evaluation ?? "");
    expect(record).toMatchObject({ recommended_action: "retry_exponential", occurrences: 1, error_code: "TIMEOUT" });
    expect(record).toMatchObject({ cause: "timeout", cause_certainty: expect.any(Number), cause_signature: expect.any(String) });
    const matched = record.rules_evaluated.filter((rule: { matched: boolean }) => rule.matched);
    expect(matched).toMatchObject([
      { rule_id: "cause_late", contribution: { kind: "prior", score: 0.85 } },
      { rule_id: "timeout_retry", contribution: { kind: "supports", score: 0.85 } },
    ]);
    expect(record.auto_execution).toEqual({ allowed: false, refusals: ["disabled"] });
  });

  it("DR-4: one that is not sure is not evaluated again and again", async () => {
    const scene = await createScene();
    await scene.die(["what is this"], { code: "" });
    expect(await scene.work()).toHaveLength(1);
    const { evaluatedAt, evaluations } = await scene.candidate();
    expect([evaluatedAt, evaluations]).toEqual([expect.any(Date), 1]);
    await scene.engine.steps.ingest();
    await scene.engine.steps.complete();
    expect(await scene.work()).toEqual([]);
  });

  it("delivered twice, or to two workers at once, is done and recorded once", async () => {
    const scene = await createScene();
    await scene.die(["no answer"]);
    const { candidateId } = await scene.candidate();
    const run = scene.engine.evaluateMessage ?? expect.fail();
    const payload = { candidate_id: candidateId, evaluation: 1 };
    const outcomes = await Promise.all([1, 2, 3, 4].map((attempt) => run(payload, attempt)));
    expect(outcomes.map(({ kind }) => kind)).toEqual(Array(4).fill("delivered"));
    await run(payload, 5);
    expect((await events(scene, candidateId)).filter((event) => event === "rule_evaluated")).toHaveLength(1);
  });

  it("one that was left in the middle by a dead process is taken up again", async () => {
    const scene = await createScene();
    await scene.die(["no answer"]);
    const { candidateId } = await scene.candidate();
    await scene.recovery.write({ candidateId, patch: { evaluationStatus: "evaluating" }, provenance: [] });
    await scene.work();
    expect((await scene.candidate()).evaluationStatus).toBe("evaluated");
  });

  it("is done anew when more failures come in while it is judged", async () => {
    const scene = await createScene();
    await scene.die(["no answer"]);
    let once = true;
    scene.engine.on("on_evaluation_start", async () => {
      if (once) await scene.die(["no answer", "no answer"]);
      once = false;
    });
    const { candidateId } = await scene.candidate();
    await scene.engine.evaluateMessage?.({ candidate_id: candidateId }, 1);
    const candidate = await scene.candidate();
    expect(candidate.evaluationStatus).toBe("evaluated");
    expect(JSON.parse(candidate.evaluation ?? "").occurrences).toBe(3);
    expect(candidate.evaluations).toBe(2);
  });

  it("fails after the last attempt, says why, and can be asked for again", async () => {
    const scene = await createScene();
    await scene.die(["no answer"]);
    const { occurrences } = scene.recovery;
    (scene.recovery as { occurrences: unknown }).occurrences = () => Promise.reject(new Error("a table is missing"));
    expect(await scene.work()).toEqual(Array(5).fill("retry"));
    const failed = await scene.candidate();
    expect(failed.evaluationStatus).toBe("failed");
    const [record] = (await scene.engine.provenance({ candidateId: failed.candidateId }, { limit: 1 })).data;
    expect(record).toMatchObject({ eventType: "evaluation_failed", reason: "a table is missing" });
    (scene.recovery as { occurrences: unknown }).occurrences = occurrences;
    expect(await scene.engine.suggest(failed.groupId, ANN)).toMatchObject({
      evaluationStatus: "evaluated",
      selectedAction: "retry_exponential",
    });
  });

  it("reads the entries of the seed's stream, and refuses what names no candidate", async () => {
    const scene = await createScene();
    await scene.die(["no answer"]);
    const { candidateId } = await scene.candidate();
    const run = scene.engine.evaluateMessage ?? expect.fail();
    expect(await run({ candidate_id: String(candidateId), priority: "0.5", idempotency_key: "x" }, 1)).toEqual({
      kind: "delivered",
    });
    expect((await scene.candidate()).evaluationStatus).toBe("evaluated");
    for (const payload of [
      null,
      7,
      {},
      { candidate_id: "12x" },
      { candidate_id: -1 },
      { candidate_id: 1.5 },
      JSON.parse(`{"__proto__":{"candidate_id":1}}`),
    ]) {
      expect(await run(payload, 1)).toMatchObject({ kind: "reject", code: "invalid_message" });
    }
    expect(await run({ candidate_id: 999_999 }, 1)).toMatchObject({ kind: "reject", code: "candidate_not_found" });
  });

  it("REC-18: switched off, failures are grouped and evaluations wait", async () => {
    const scene = await createScene({ settings: { evaluatorEnabled: false } });
    expect(scene.engine.evaluateMessage).toBe(null);
    await scene.die(["no answer"]);
    expect((await scene.store.list({ topic: RECOVERY_TOPIC, limit: 10 })).data).toMatchObject([{ status: "pending" }]);
    expect(await scene.work(scene.another({ evaluatorEnabled: true }))).toEqual(["delivered"]);
  });

  it("REC-18: below the minimum nothing is suggested; RECOVERY_RULE_DEBUG tells every rule's result", async () => {
    const scene = await createScene({ settings: { minConfidence: 0.9, ruleDebug: true } });
    const candidate = await scene.timeout();
    expect(candidate).toMatchObject({ evaluationStatus: "evaluated", selectedAction: null, confidence: 0 });
    const told = scene.events.filter((event) => event.type === "lifecycle" && event.what === "recovery_rules");
    expect(told).toMatchObject([{ detail: { candidateId: candidate.candidateId, rules: expect.any(Array) } }]);
  });

  it("DR-31: an action that history names and the catalogue does not is never suggested", async () => {
    const scene = await createScene();
    const { groupId } = await scene.timeout();
    await scene.recovery.learn(times(500, { groupId, action: "reboot the moon", healed: 1, failed: 0 }));
    const { selectedAction, evaluation } = await scene.engine.suggest(groupId, ANN);
    expect(selectedAction).toBe("retry_exponential");
    expect(JSON.parse(evaluation ?? "").notes).toMatchObject([expect.stringContaining(`"reboot the moon"`)]);
  });

  it("learns: outcomes of the group move the suggestion, and the record says by how much", async () => {
    const scene = await createScene();
    const { groupId } = await scene.timeout();
    await scene.recovery.learn(times(9, { groupId, action: "retry_exponential", healed: 0, failed: 1 }));
    await scene.recovery.learn(times(8, { groupId, action: "notify_ops", healed: 1, failed: 0 }));
    const after = await scene.engine.suggest(groupId, ANN);
    expect(after.selectedAction).toBe("notify_ops");
    const [selected] = (await scene.engine.provenance({ candidateId: after.candidateId }, { limit: 1 })).data;
    expect(selected).toMatchObject({ eventType: "action_selected", confidenceBefore: 0.85, confidenceAfter: after.confidence });
  });

  it("a choice of a person stays when it is evaluated again", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.timeout();
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "notify_ops", reason: "ask them first" });
    const after = await scene.engine.suggest(groupId, ANN);
    expect(after.selectedAction).toBe("notify_ops");
    expect(JSON.parse(after.evaluation ?? "")).toMatchObject({ recommended_action: "retry_exponential", selected_by: "ann" });
  });
});

describe("REC-14: a question", () => {
  it("is answered like an evaluation, writes nothing and teaches nothing", async () => {
    const scene = await createScene();
    const { groupId } = await scene.timeout();
    const revision = await scene.recovery.documents.revision("templates");
    for (const name of ["ann", "bo", "cy", "dan", "eve"]) {
      await scene.engine.evaluate({ errorCode: "E_CARD", errorMessage: `card of user ${name} refused`, topic: "shop/charge" });
    }
    const known = await scene.engine.evaluate({
      errorCode: "TIMEOUT",
      errorMessage: "no answer within 77 ms",
      topic: "shop/charge",
    });
    expect(known).toMatchObject({ groupId, evaluation: { recommended: { action: "retry_exponential" }, confidence: 0.85 } });
    const unknown = await scene.engine.evaluate({ errorCode: "TIMEOUT", errorMessage: "quite another text" });
    expect(unknown.groupId).toBe(null);
    expect((await scene.engine.stats()).occurrences).toBe(1);
    expect(await scene.recovery.documents.revision("templates")).toBe(revision);
  });
});

describe("REC-17: hooks", () => {
  it("are told in order, and can be taken off", async () => {
    const scene = await createScene();
    const told: string[] = [];
    scene.engine.on("on_evaluation_start", ({ candidate }) => told.push(`start ${candidate.evaluationStatus}`));
    scene.engine.on("on_suggestion_generated", ({ evaluation }) => told.push(`suggestion ${evaluation.recommended?.action}`));
    scene.engine.on("on_action_selected", ({ action, confidence }) => told.push(`${action} ${confidence}`));
    const off = scene.engine.on("on_action_selected", () => told.push("never"));
    off();
    await scene.timeout();
    expect(told).toEqual(["start evaluating", "suggestion retry_exponential", "retry_exponential 0.85"]);
  });

  it("DR-44: one that throws, or never ends, changes nothing but a line in the events", async () => {
    const scene = await createScene();
    const told: string[] = [];
    scene.engine.on("on_evaluation_start", () => {
      throw new Error("no");
    });
    scene.engine.on("on_suggestion_generated", () => new Promise(() => {}), { timeoutMs: 50 });
    scene.engine.on("on_suggestion_generated", () => told.push("the next one"));
    await scene.die(["no answer"]);
    const working = scene.work();
    await scene.clock.advance(60);
    expect(await working).toEqual(["delivered"]);
    expect(await scene.candidate()).toMatchObject({ evaluationStatus: "evaluated", selectedAction: "retry_exponential" });
    expect(told).toEqual(["the next one"]);
    const failed = scene.events.filter((event) => event.type === "lifecycle" && event.what === "recovery_hook_failed");
    expect(failed).toMatchObject([
      { detail: { hook: "on_evaluation_start", error: "no" } },
      { detail: { hook: "on_suggestion_generated", error: expect.stringContaining("50 ms") } },
    ]);
  });

  it("DR-44: one that says nothing of its time has a second", async () => {
    const scene = await createScene();
    scene.engine.on("on_evaluation_start", () => new Promise(() => {}));
    await scene.die(["no answer"]);
    const working = scene.work();
    await scene.clock.advance(999);
    expect((await scene.candidate()).evaluationStatus).toBe("evaluating");
    await scene.clock.advance(1);
    expect(await working).toEqual(["delivered"]);
  });
});
