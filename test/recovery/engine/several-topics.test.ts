/**
 * A group whose messages are in several topics, because groups were merged: an action is done in each of them, or refused before it begins.
 */
import { describe, expect, it } from "vitest";
import type { SinkConfig } from "../../../src/message/topic.ts";
import { ANN, BO, createScene, DELIVERED, definition, type Scene, TOPIC } from "./scene.ts";

const OTHER = "shop/refund";
const SINK: SinkConfig = { kind: "http", url: "https://refund.example/in" };

/** One group of both topics, with this action, approved. */
async function merged(action: string, other: { fallback?: SinkConfig } = {}): Promise<{ scene: Scene; candidateId: number }> {
  const scene = await createScene({ fallback: SINK });
  await scene.store.topics.put(definition(OTHER, SINK, other), "code");
  await scene.die(["no answer within 5 ms", "no answer within 6 ms"]);
  await scene.die(["no answer within 7 ms"], { topic: OTHER });
  await scene.work();
  const { data } = await scene.engine.groups({ limit: 10 });
  const id = (topic: string): number => data.find((each) => each.topic === topic)?.groupId ?? 0;
  await scene.engine.merge(id(TOPIC), [id(OTHER)], "one outage", ANN);
  await scene.work();
  const { candidateId } = await scene.candidate();
  await scene.engine.update(candidateId, { ...ANN, selectedAction: action });
  for (const by of [ANN, BO]) await scene.engine.approve(candidateId, by);
  return { scene, candidateId };
}

const breakers = ({ store }: Scene) =>
  Promise.all([TOPIC, OTHER].map(async (topic) => (await store.topics.get(topic))?.breaker.state));

describe("a group of several topics", () => {
  it("circuit_breaker opens the breaker of each, and closes each when it is rolled back", async () => {
    const { scene, candidateId } = await merged("circuit_breaker");
    await scene.engine.execute(candidateId, ANN);
    expect(await breakers(scene)).toEqual(["open", "open"]);
    scene.engine.start();
    await scene.clock.advance(60_000);
    for (const topic of [TOPIC, OTHER]) {
      const { data } = await scene.store.list({ topic, status: "pending", limit: 10 });
      await scene.settle(
        data.map(({ id }) => id),
        DELIVERED,
      );
    }
    await scene.clock.advance(60_000);
    await scene.engine.stop();
    const done = await scene.candidate();
    expect(done.executionStatus).toBe("succeeded");
    expect(JSON.parse(done.executionResult ?? "").breakers.toSorted()).toEqual([TOPIC, OTHER]);
    for (const topic of [TOPIC, OTHER]) await scene.store.topics.trip(topic, 60_000, "still");
    await scene.engine.update(candidateId, { ...ANN, executionStatus: "rolled_back" });
    expect(await breakers(scene)).toEqual(["closed", "closed"]);
  });

  it("fallback_model is refused before it begins when one topic has no such sink, and the topic is named", async () => {
    const { scene, candidateId } = await merged("fallback_model");
    await expect(scene.engine.execute(candidateId, ANN)).rejects.toMatchObject({
      code: "action_refused",
      message: expect.stringContaining(`topic ${OTHER} has no fallback sink`),
      detail: { topic: OTHER },
    });
    expect(await scene.candidate()).toMatchObject({ executionStatus: "pending", executionId: null });
    const both = await merged("fallback_model", { fallback: SINK });
    expect(await both.scene.engine.execute(both.candidateId, ANN)).toMatchObject({ executionStatus: "executing" });
  });
});
