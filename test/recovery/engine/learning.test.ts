/**
 * What is learned from executions, end to end: one message that was healed once teaches once.
 */
import { describe, expect, it } from "vitest";
import { CONFIDENCE_GATES } from "../../../src/recovery/confidence/gates.ts";
import { ANN, createScene, DELIVERED, TOPIC, times } from "./scene.ts";

const MINUTE_MS = 60_000;

describe("what is learned", () => {
  it("DR-30: a notice is not what healed a message that a person redrove, nor are three", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.timeout();
    scene.engine.start();
    for (let round = 0; round < 3; round++) {
      const asked = round === 0 ? candidateId : (await scene.engine.suggest(groupId, ANN)).candidateId;
      await scene.engine.update(asked, { ...ANN, selectedAction: "notify_ops" });
      await scene.engine.execute(asked, ANN);
      await scene.clock.advance(1_000);
    }
    await scene.engine.startRedrive({ select: { groupId }, reason: "the receiver is back" }, ANN);
    await scene.clock.advance(1_000);
    const pending = (await scene.store.list({ topic: TOPIC, status: "pending", limit: 10 })).data;
    await scene.settle(
      pending.map(({ id }) => id),
      DELIVERED,
    );
    await scene.clock.advance(30 * MINUTE_MS);
    await scene.engine.stop();
    const learned = (await scene.recovery.observations(groupId)).filter((each) => each.groupId === groupId);
    // One message was healed once.
    expect(
      learned.reduce((sum, { healed }) => sum + healed, 0),
      JSON.stringify(learned),
    ).toBe(1);
  });

  it("the record of an action that no rule proposes says what its evaluation does: what it healed elsewhere is not enough", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.timeout();
    const elsewhere = await scene.engine.ingest(
      scene.report({ topic: TOPIC, errorCode: "E_OTHER", errorMessage: "no paper in tray" }),
      ANN,
    );
    await scene.recovery.learn(times(50, { groupId: elsewhere.groupId, action: "notify_ops", healed: 1, failed: 0 }));
    const asked = await scene.engine.evaluate({ errorCode: "TIMEOUT", errorMessage: "no answer within 77 ms", topic: TOPIC });
    expect(asked.groupId).toBe(groupId);
    const evaluated = asked.evaluation.ranked.find(({ action }) => action === "notify_ops");
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "notify_ops" });
    await scene.engine.execute(candidateId, ANN);
    const { data } = await scene.engine.provenance({ candidateId }, { limit: 10 });
    const confidence = data.find(({ eventType }) => eventType === "executed")?.confidenceAfter;
    expect(confidence).toBe(evaluated?.confidence);
    expect(confidence).toBeLessThan(CONFIDENCE_GATES.select);
  });
});
