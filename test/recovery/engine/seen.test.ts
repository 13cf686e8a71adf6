/**
 * What was seen is what is touched: an execution's list holds nothing that came after the look, whatever happens between the two.
 */
import { describe, expect, it } from "vitest";
import { ANN, createScene, DELIVERED, dead, type Scene, TOPIC } from "./scene.ts";

const executed = async (scene: Scene) => {
  const { redriveId } = await scene.candidate();
  return (await scene.engine.redriveItems(redriveId as string, { limit: 10 })).data.map(({ messageId }) => messageId);
};

const open = async (scene: Scene) =>
  (await scene.store.list({ topic: TOPIC, status: "dead", limit: 10 })).data.map(({ id }) => id).reverse();

async function moveOn(scene: Scene, id: string): Promise<void> {
  await scene.store.intervene({ id, action: "replay", actor: "bo", reason: null });
  await scene.settle([id], DELIVERED);
}

describe("an execution", () => {
  it("does not take one that died meanwhile for one that moved on", async () => {
    const scene = await createScene();
    const { candidateId } = await scene.timeout(3);
    const [first, second, third] = (await open(scene)) as [string, string, string];
    scene.engine.on("on_execution_start", async () => {
      await moveOn(scene, first);
      await scene.die(["no answer within 9 ms"]);
    });
    await scene.engine.execute(candidateId, ANN);
    expect(await executed(scene)).toEqual([second, third]);
  });

  it("with the mark of what a person saw touches that alone, minutes later", async () => {
    const scene = await createScene();
    const { candidateId, groupId } = await scene.timeout(2);
    const seen = await open(scene);
    const { blastRadius } = await scene.engine.candidate(candidateId);
    await scene.die(["no answer within 9 ms", "no answer within 10 ms"]);
    expect((await scene.recovery.group(groupId))?.openMessages).toBe(4);
    const redrive = { confirm: 4, seen: blastRadius.seen };
    await expect(scene.engine.execute(candidateId, { ...ANN, redrive })).rejects.toMatchObject({
      code: "confirmation_needed",
      detail: { messages: 2, seen: blastRadius.seen },
    });
    await scene.engine.execute(candidateId, { ...ANN, redrive: { ...redrive, confirm: 2 } });
    expect(await executed(scene)).toEqual(seen);
  });

  it.each(["retry_exponential", "skip_task", "notify_ops"])(
    "%s is refused when nothing is left of what was seen",
    async (action) => {
      const scene = await createScene();
      const { candidateId } = await scene.timeout(2);
      await scene.engine.update(candidateId, { ...ANN, selectedAction: action });
      const { blastRadius } = await scene.engine.candidate(candidateId);
      for (const id of await open(scene)) await moveOn(scene, id);
      await scene.die(["no answer within 9 ms"]);
      const redrive = { seen: blastRadius.seen };
      await expect(scene.engine.execute(candidateId, { ...ANN, redrive })).rejects.toMatchObject({ code: "nothing_selected" });
      expect(await scene.candidate()).toMatchObject({ executionStatus: "pending" });
      const wrong = { seen: "what I saw" };
      await expect(scene.engine.execute(candidateId, { ...ANN, redrive: wrong })).rejects.toMatchObject({
        code: "invalid_request",
      });
    },
  );

  it("for failures of others, of which there is no message, a mark says nothing and is no hindrance", async () => {
    const scene = await createScene();
    await scene.engine.ingest(scene.report(), ANN);
    await scene.work();
    const { candidateId } = await scene.candidate();
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "notify_ops" });
    const { blastRadius } = await scene.engine.candidate(candidateId);
    const redrive = { confirm: 0, seen: blastRadius.seen };
    expect(await scene.engine.execute(candidateId, { ...ANN, redrive })).toMatchObject({ executionStatus: "succeeded" });
  });
});

describe("a message whose copy is on its way", () => {
  it("is not edited, and not replayed by a redrive, until the copy has failed", async () => {
    const scene = await createScene({ fallback: { kind: "http", url: "https://other.example" } });
    const { candidateId } = await scene.timeout(1);
    const [id] = (await open(scene)) as [string];
    await scene.engine.update(candidateId, { ...ANN, selectedAction: "fallback_model" });
    await scene.engine.approve(candidateId, ANN);
    scene.engine.start();
    const { redriveId } = await scene.engine.execute(candidateId, ANN);
    await scene.clock.advance(60_000);
    const [item] = (await scene.engine.redriveItems(redriveId as string, { limit: 10 })).data;
    const carrierId = item?.carrierId as string;
    const edit = { ...ANN, payload: "1", reason: "a typo" };
    await expect(scene.engine.edit(id, edit)).rejects.toMatchObject({ code: "carried", detail: { id, carrierId, redriveId } });
    const alone = scene.engine.startRedrive({ select: { ids: [id] }, reason: "once more" }, ANN);
    await expect(alone).rejects.toMatchObject({ code: "nothing_selected", detail: { messages: 1, leftOut: { carried: 1 } } });
    const [other = ""] = await scene.die(["no answer within 1 ms"]);
    const started = await scene.engine.startRedrive({ select: { ids: [id, other] }, reason: "once more" }, ANN);
    await scene.clock.advance(10_000);
    const { data: items } = await scene.engine.redriveItems(started.redrive.redriveId, { limit: 10 });
    expect(items.find(({ messageId }) => messageId === id)).toMatchObject({ state: "skipped", reason: "carried" });
    expect(items.find(({ messageId }) => messageId === other)).toMatchObject({ state: "sent" });
    await scene.settle([carrierId], dead("gone too", "http_500"));
    const again = await scene.engine.startRedrive({ select: { ids: [id] }, reason: "once more" }, ANN);
    await scene.clock.advance(10_000);
    expect((await scene.engine.redriveItems(again.redrive.redriveId, { limit: 10 })).data[0]).toMatchObject({ state: "sent" });
    await scene.engine.stop();
  });
});
