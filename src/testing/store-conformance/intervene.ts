/**
 * Interventions: replay, resolve and discard, each only from the states it is meant for, fenced by revision, with its
 * provenance in the same write.
 */
import assert from "node:assert/strict";
import type { MessageView } from "../../message/message.ts";
import type { Settlement } from "../../message/settlement.ts";
import type { Intervention, InterventionResult, Store } from "../../store/store.ts";
import { DAY, DELIVERED, dead, hold, idsOf, MINUTE, retry, SECOND, seen, sorted } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

type Action = Intervention["action"];
const ACTIONS: readonly Action[] = ["replay", "resolve", "discard", "cancel", "reschedule"];

/** A message that was claimed once and settled like this. */
export async function settledAs(scene: Scene, settlement: Settlement): Promise<MessageView> {
  const [id] = await scene.accept(0);
  await scene.settled(2, await scene.take(1, 1), settlement);
  return seen(scene.store, id as string);
}

export function intervene(
  scene: Scene,
  ms: number,
  action: Action,
  id: string,
  more: Partial<Intervention> = {},
  store: Store = scene.store,
) {
  return store.intervene({ id, action, actor: "person", reason: "looked at it", ...scene.at(ms), ...more });
}

export async function done(result: Promise<InterventionResult>): Promise<MessageView> {
  const answer = await result;
  assert.equal(answer.kind, "done");
  return (answer as Extract<InterventionResult, { kind: "done" }>).message;
}

export async function wrongState(scene: Scene, id: string, actions: readonly Action[]): Promise<void> {
  const before = await seen(scene.store, id);
  for (const action of actions) {
    const { status, resolution } = before;
    assert.deepEqual(await intervene(scene, 10, action, id), { kind: "wrong_state", status, resolution }, action);
  }
  assert.deepEqual(await seen(scene.store, id), before);
}

export const interveneCases: Record<string, (scene: Scene) => Promise<void>> = {
  "replay of a dead letter: due now, a new generation and budget, attempts keep growing": async (scene) => {
    const [id] = await scene.accept(0);
    await scene.settled(2, await scene.take(1, 1), retry());
    await scene.settled(4, await scene.take(1, 3), dead());
    const before = await seen(scene.store, id as string);
    const view = await done(intervene(scene, 10, "replay", before.id));
    assert.deepEqual([view.status, view.resolution, view.diedAt, view.nextAttemptAt], ["pending", null, null, scene.at(10).now]);
    assert.deepEqual([view.generation, view.revision], [before.generation + 1, before.revision + 1]);
    assert.deepEqual(await seen(scene.store, before.id), view);
    const claimed = await scene.takeOne(11);
    assert.deepEqual([claimed.id, claimed.attempt, claimed.base, claimed.payload], [before.id, 3, 2, before.payload]);
    await scene.settled(12, [claimed], dead());
    assert.equal((await done(intervene(scene, 13, "replay", before.id))).generation, before.generation + 2);
    assert.equal((await scene.takeOne(14)).base, 3);
  },

  "replay of a held message": async (scene) => {
    const before = await settledAs(scene, hold());
    const view = await done(intervene(scene, 10, "replay", before.id));
    assert.deepEqual([view.status, view.heldReason, view.nextAttemptAt], ["pending", null, scene.at(10).now]);
    assert.deepEqual([view.generation, view.revision], [before.generation + 1, before.revision + 1]);
    const claimed = await scene.takeOne(11);
    assert.deepEqual([claimed.attempt, claimed.base], [2, 1]);
    await scene.settled(12, [claimed], DELIVERED);
    assert.equal((await seen(scene.store, before.id)).generation, before.generation + 1);
  },

  "a replay clears suspicion": async (scene) => {
    const before = await settledAs(scene, retry(0, false, 2));
    await scene.settled(4, await scene.take(1, 3), dead());
    await done(intervene(scene, 10, "replay", before.id));
    assert.equal((await scene.takeOne(11)).suspicion, 0);
  },

  "resolve of a dead letter": async (scene) => {
    const before = await settledAs(scene, dead());
    const view = await done(intervene(scene, 10, "resolve", before.id));
    assert.deepEqual([view.status, view.resolution, view.revision], ["dead", "resolved", before.revision + 1]);
    assert.deepEqual(view.diedAt, before.diedAt, "it died when it died, not when it was looked at");
    await scene.nothing(DAY);
  },

  "resolve of a held message ends it as resolved": async (scene) => {
    const before = await settledAs(scene, hold());
    const view = await done(intervene(scene, 10, "resolve", before.id));
    assert.deepEqual([view.status, view.resolution, view.heldReason, view.nextAttemptAt], ["dead", "resolved", null, null]);
    assert.deepEqual(await seen(scene.store, before.id), view);
  },

  "discard of a dead letter, a held message, a due one and a delayed one": async (scene) => {
    const ended = [await settledAs(scene, dead()), await settledAs(scene, hold())];
    const pending = await scene.accept(5, {}, { delayMs: MINUTE });
    for (const id of [...idsOf(ended), ...pending]) {
      const view = await done(intervene(scene, 10, "discard", id));
      assert.deepEqual([view.status, view.resolution, view.heldReason, view.nextAttemptAt], ["dead", "discarded", null, null]);
    }
    await scene.nothing(DAY);
  },

  "a pending message that is not held: neither replay nor resolve": async (scene) => {
    const [id] = await scene.accept(0);
    await wrongState(scene, id as string, ["replay", "resolve"]);
    assert.equal((await scene.takeOne(20)).id, id);
  },

  "a message in flight belongs to its claim: wrong_state for all of them": async (scene) => {
    const [id] = await scene.accept(0);
    const claimed = await scene.take(1, 1);
    await wrongState(scene, id as string, ACTIONS);
    await scene.settled(20, claimed, DELIVERED);
  },

  "DO-16: delivered, resolved and discarded are final": async (scene) => {
    await wrongState(scene, (await settledAs(scene, DELIVERED)).id, ACTIONS);
    for (const action of ["resolve", "discard"] as const) {
      const { id } = await settledAs(scene, dead());
      await done(intervene(scene, 5, action, id));
      await wrongState(scene, id, ACTIONS);
    }
  },

  "an id that nobody has is not_found": async (scene) => {
    for (const action of ACTIONS) assert.deepEqual(await intervene(scene, 1, action, scene.id()), { kind: "not_found" });
    assert.equal(await scene.store.get(scene.id()), null);
    assert.deepEqual(await scene.store.history(scene.id()), { attempts: [], provenance: [] });
  },

  "what is no id at all is not found either": async (scene) => {
    assert.deepEqual(await intervene(scene, 1, "replay", "no-such-id"), { kind: "not_found" });
    assert.equal(await scene.store.get("no-such-id"), null);
    assert.deepEqual(await scene.store.history("no-such-id"), { attempts: [], provenance: [] });
  },

  "the revision that was seen must still be the one": async (scene) => {
    const before = await settledAs(scene, dead());
    const { id, revision } = before;
    const stale = await intervene(scene, 5, "replay", id, { revision: revision + 1 });
    assert.deepEqual(stale, { kind: "revision_conflict", revision });
    assert.deepEqual(await seen(scene.store, id), before);
    assert.deepEqual((await scene.store.history(id)).provenance, []);
    await done(intervene(scene, 6, "replay", id, { revision }));
    await scene.settled(8, await scene.take(1, 7), dead());
    const late = await intervene(scene, 9, "resolve", id, { revision });
    assert.equal(late.kind, "revision_conflict", "it died again since: the next person decides on what they see now");
    await done(intervene(scene, 10, "resolve", id, { revision: (await seen(scene.store, id)).revision }));
  },

  "provenance says who did what, when and why, oldest first; a refused one leaves no line": async (scene) => {
    const { id } = await settledAs(scene, dead());
    await done(intervene(scene, SECOND, "replay", id, { actor: "rule:timeouts", reason: null }));
    await intervene(scene, 2 * SECOND, "resolve", id);
    await scene.settled(4 * SECOND, await scene.take(1, 3 * SECOND), dead());
    await done(intervene(scene, 5 * SECOND, "discard", id, { actor: "ops", reason: "sent twice" }));
    const { attempts, provenance } = await scene.store.history(id);
    assert.deepEqual(provenance, [
      { at: scene.at(SECOND).now, actor: "rule:timeouts", action: "replay", reason: null },
      { at: scene.at(5 * SECOND).now, actor: "ops", action: "discard", reason: "sent twice" },
    ]);
    assert.equal(attempts.length, 2);
  },
};

export const interveneRaceCases: Record<string, (scene: Scene) => Promise<void>> = {
  "two at once on one message: exactly one is done": async (scene) => {
    const instances = await scene.instances(4);
    for (const settlement of [dead(), hold(), dead()]) {
      const { id, revision } = await settledAs(scene, settlement);
      const results = await Promise.all(
        instances.map((store, i) => intervene(scene, 5, i % 2 === 0 ? "discard" : "resolve", id, { revision }, store)),
      );
      assert.equal(results.filter(({ kind }) => kind === "done").length, 1);
      assert.equal((await scene.store.history(id)).provenance.length, 1);
      assert.equal((await seen(scene.store, id)).revision, revision + 1);
    }
  },

  "many replay one dead letter at once: one replay, one delivery": async (scene) => {
    const instances = await scene.instances(6);
    const { id, generation } = await settledAs(scene, dead());
    const results = await Promise.all(instances.map((store) => intervene(scene, 5, "replay", id, {}, store)));
    assert.equal(results.filter(({ kind }) => kind === "done").length, 1);
    assert.equal((await seen(scene.store, id)).generation, generation + 1);
    await scene.takeOne(6);
    await scene.nothing(7);
  },

  "discard against claim: each message goes to one of them": async (scene) => {
    const [store, other] = await scene.instances(2);
    assert.ok(store && other);
    const ids = await scene.accept(0, ...Array.from({ length: 40 }, () => ({})));
    const claims = Array.from({ length: 8 }, () => scene.claim(1, { limit: 3, store: other }));
    const discards = ids.map(async (id) => (await intervene(scene, 1, "discard", id, {}, store)).kind === "done" && id);
    const discarded = (await Promise.all(discards)).filter((id) => id !== false);
    const claimed = idsOf((await Promise.all(claims)).flat());
    const rest = idsOf(await scene.take(ids.length - discarded.length - claimed.length, 2));
    assert.deepEqual(sorted([...discarded, ...claimed, ...rest]), sorted(ids));
  },
};
