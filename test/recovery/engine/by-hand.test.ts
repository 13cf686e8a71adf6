/**
 * What people do past the engine's suggestion: an action chosen before anything was evaluated, an undo that was interrupted, rules that
 * are taken away. Each is carried to its end and is on record with the change itself.
 */
import { describe, expect, it } from "vitest";
import { ANN, BO, createScene, DELIVERED, TOPIC } from "./scene.ts";

/** The engine sends them, they arrive, and it comes to know. */
async function delivered(scene: Awaited<ReturnType<typeof createScene>>, ids: readonly string[]): Promise<void> {
  scene.engine.start();
  await scene.clock.advance(1_000);
  await scene.settle(ids, DELIVERED);
  await scene.clock.advance(60_000);
  await scene.engine.stop();
}

describe("an action that a person chose before anything was evaluated", () => {
  it("is executed and ended, and the record says how sure it is by what it taught", async () => {
    const scene = await createScene();
    await scene.die(["no answer within 5 ms"]);
    const { candidateId, groupId } = await scene.candidate();
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "manual_intervention" });
    expect(await scene.engine.execute(candidateId, ANN)).toMatchObject({ executionStatus: "succeeded" });
    expect(await scene.recovery.group(groupId)).toMatchObject({ heldBy: "operators" });
  });

  it("that delivers again is ended by what became of its messages", async () => {
    const scene = await createScene();
    const [id = ""] = await scene.die(["no answer within 5 ms"]);
    const { candidateId } = await scene.candidate();
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "retry_exponential" });
    await scene.engine.execute(candidateId, ANN);
    await delivered(scene, [id]);
    expect(await scene.recovery.candidate(candidateId)).toMatchObject({ executionStatus: "succeeded" });
    const { data } = await scene.engine.provenance({ candidateId }, { limit: 1 });
    expect(data).toMatchObject([{ eventType: "executed", confidenceAfter: expect.any(Number) }]);
    expect(scene.events.filter(({ type }) => type === "store_error")).toEqual([]);
  });
});

describe("an action that a person chose instead", () => {
  it("is not told as another one when it is evaluated again", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.timeout();
    const told: string[] = [];
    scene.engine.on("on_suggestion_generated", ({ evaluation }) => told.push(`suggested ${evaluation.recommended?.action}`));
    scene.engine.on("on_action_selected", ({ action }) => told.push(`selected ${action}`));
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "notify_ops" });
    await scene.engine.suggest(groupId, ANN);
    expect(told).toEqual(["suggested retry_exponential"]);
  });

  it("does not run by itself, although what was suggested before might have", async () => {
    const scene = await createScene({ settings: { autoExecute: true } });
    await scene.die(["no answer within 5 ms"]);
    const { candidateId, groupId } = await scene.candidate();
    // Evaluated at once for the person who asks; the messages that were queued with it come later.
    const asked = await scene.engine.suggest(groupId, ANN);
    expect(JSON.parse(asked.evaluation ?? "").auto_execution).toMatchObject({ allowed: true, refusals: [] });
    const chosen = await scene.engine.update(candidateId, { ...ANN, selectedAction: "notify_ops" });
    expect(JSON.parse(chosen.evaluation ?? "").auto_execution).toMatchObject({ allowed: false });
    expect(await scene.work()).not.toEqual([]);
    expect(await scene.candidate()).toMatchObject({ executionStatus: "pending", selectedAction: "notify_ops" });
  });
});

describe("an execution whose record cannot be read", () => {
  it("is said, and does not keep the others from ending", async () => {
    const scene = await createScene();
    const [first = "", second = ""] = [
      ...(await scene.die(["no answer within 5 ms"])),
      ...(await scene.die(["the journal is closed since noon"], { code: "CLOSED" })),
    ];
    const { data } = await scene.recovery.candidates({ limit: 10 });
    for (const { candidateId } of data) {
      await scene.engine.update(candidateId, { ...ANN, selectedAction: "retry_exponential" });
      await scene.engine.execute(candidateId, ANN);
    }
    // The newest is looked at first.
    const [newest, oldest] = data.map(({ candidateId }) => candidateId) as [number, number];
    await scene.recovery.write({ candidateId: newest, patch: { executionResult: "{" }, provenance: [] });
    await delivered(scene, [first, second]);
    expect(await scene.recovery.candidate(oldest)).toMatchObject({ executionStatus: "succeeded" });
    expect(scene.events).toContainEqual(expect.objectContaining({ type: "store_error", during: "recovery_completion" }));
  });
});

describe("a group rule that is taken away", () => {
  it("is on record in the same write, whichever way it is taken away", async () => {
    const scene = await createScene();
    const [id = ""] = await scene.die(["upstream answered 503 after 1 ms", "upstream answered 429 after 2 ms"], { code: "E_UP" });
    const whole = (await scene.recovery.groupOf({ messageId: id }))?.groupId ?? 0;
    const first = await scene.engine.split(whole, ["503"], "another cause", ANN);
    const [rule] = await scene.engine.groupRules();
    await scene.engine.merge(whole, [first.group.groupId], "not after all", ANN);
    await scene.engine.split(whole, ["503"], "after all", BO);
    const deleted = async () => {
      const { data } = await scene.engine.provenance({}, { limit: 200 });
      return data.filter(({ eventType }) => eventType === "group_rule_deleted");
    };
    expect(await deleted()).toMatchObject([
      { ruleId: rule?.id, actor: "bo", reason: expect.stringContaining("split off again") },
    ]);
    // A process that is killed after the deletion writes nothing more.
    scene.recovery.note = () => Promise.reject(new Error("killed"));
    const [again] = (await scene.engine.groupRules()).filter(({ kind }) => kind === "split");
    await scene.engine.deleteGroupRule(again?.id ?? "", null, ANN);
    expect(await deleted()).toMatchObject([{ ruleId: again?.id, actor: "ann", reason: "after all" }, { ruleId: rule?.id }]);
  });
});

describe("rolling back what opened a breaker", () => {
  it("while the store does not answer can be asked for again, and closes it then", async () => {
    const scene = await createScene();
    const [id = ""] = await scene.die(["no answer within 5 ms"]);
    const { candidateId } = await scene.candidate();
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "circuit_breaker" });
    await scene.engine.approve(candidateId, ANN);
    await scene.engine.execute(candidateId, ANN);
    await delivered(scene, [id]);
    expect(await scene.recovery.candidate(candidateId)).toMatchObject({ executionStatus: "succeeded" });
    const { topics } = scene.store;
    await topics.trip(TOPIC, 3_600_000, "still open");
    const { reset } = topics;
    Object.assign(topics, { reset: () => Promise.reject(new Error("away")) });
    const undo = () => scene.engine.update(candidateId, { ...ANN, executionStatus: "rolled_back" });
    await expect(undo()).rejects.toThrow("away");
    Object.assign(topics, { reset });
    expect(await undo()).toMatchObject({ executionStatus: "rolled_back" });
    expect((await topics.get(TOPIC))?.breaker.state).toBe("closed");
  });
});
