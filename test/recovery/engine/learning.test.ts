/**
 * What is learned from executions, end to end on the memory store: one message that was healed once teaches once.
 */
import { describe, expect, it } from "vitest";
import { PRIOR_WITHOUT_RULE } from "../../../src/recovery/confidence/confidence.ts";
import { ANN, createScene, DELIVERED, TOPIC } from "./scene.ts";

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
    const learned = (await scene.recovery.outcomes(groupId, 1e12)).filter(({ level }) => level === "group");
    const healed = Object.fromEntries(learned.map(({ action, successes }) => [action, Math.round(successes)]));
    // One message was healed once.
    expect(
      Object.values(healed).reduce((sum, each) => sum + each, 0),
      JSON.stringify(healed),
    ).toBe(1);
  });

  it("the record of an action that no rule proposes counts only what was learned here, as its evaluation does", async () => {
    const scene = await createScene();
    const { candidateId } = await scene.timeout();
    const elsewhere = await scene.engine.ingest(
      scene.report({ topic: TOPIC, errorCode: "E_OTHER", errorMessage: "no paper in tray" }),
      ANN,
    );
    const learned = { action: "notify_ops", healed: 50, failed: 0 };
    await scene.recovery.learn([{ groupId: elsewhere.groupId, ...learned }], 1e12);
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "notify_ops" });
    await scene.engine.execute(candidateId, ANN);
    const { data } = await scene.engine.provenance({ candidateId }, { limit: 10 });
    expect(data.find(({ eventType }) => eventType === "executed")?.confidenceAfter).toBe(PRIOR_WITHOUT_RULE);
  });
});
