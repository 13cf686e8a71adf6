/**
 * Wake hints: they only save waiting, so a case asserts that they come, never that none comes too many.
 */
import assert from "node:assert/strict";
import { sleep, systemClock } from "../../platform/clock.ts";
import type { Store, WakeHint } from "../../store/store.ts";
import { dead, definition } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

/** Listens while `act` runs and until a hint of the kind came, or a moment has passed. */
async function heard(store: Store, kind: WakeHint["kind"], act: () => Promise<unknown>): Promise<boolean> {
  let came = false;
  const stop = store.wake((hint) => {
    came ||= hint.kind === kind;
  });
  try {
    await act();
    for (let tries = 0; !came && tries < 100; tries++) await sleep(systemClock, 20);
    return came;
  } finally {
    stop();
  }
}

export const wakeCases: Record<string, (scene: Scene) => Promise<void>> = {
  "an enqueue wakes": async (scene) => {
    assert.ok(await heard(scene.store, "work", () => scene.accept(0)));
  },

  "a replay wakes": async (scene) => {
    const [id] = await scene.accept(0);
    await scene.settled(2, await scene.take(1, 1), dead());
    const replay = { id: id as string, action: "replay", actor: "person", reason: null } as const;
    assert.ok(await heard(scene.store, "work", () => scene.store.intervene({ ...replay, ...scene.at(3) })));
  },

  "a change of a topic is a hint": async (scene) => {
    const { topics } = scene.store;
    assert.ok(await heard(scene.store, "topics", () => topics.put(definition("test/new"), "code")));
    assert.ok(await heard(scene.store, "topics", () => topics.pause("test/new", true)));
    assert.ok(await heard(scene.store, "topics", () => topics.trip("test/new", 1_000, "down", scene.at(0))));
  },

  "who has stopped listening is not called; a listener that throws harms nobody": async (scene) => {
    let called = 0;
    const stop = scene.store.wake(() => called++);
    stop();
    stop();
    const broken = scene.store.wake(() => {
      throw new Error("broken listener");
    });
    assert.ok(await heard(scene.store, "work", () => scene.accept(0)));
    broken();
    assert.equal(called, 0);
    assert.equal((await scene.takeOne(1)).attempt, 1);
  },

  "push: an idle worker of another instance is woken": async (scene) => {
    if (scene.store.traits.wake !== "push") return;
    const [, other] = await scene.instances(2);
    assert.ok(other && other !== scene.store, "push needs harness.another");
    await other.idle("sleeper", true);
    assert.ok(await heard(other, "work", () => scene.store.enqueue([scene.message()])));
    assert.ok(await heard(other, "topics", () => scene.store.topics.put(definition("test/new"), "code")));
    await other.idle("sleeper", false);
  },
};
