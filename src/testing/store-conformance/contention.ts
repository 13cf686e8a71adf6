/**
 * Contention (I3, I12): many claimers over several instances, and every message is delivered exactly once as long as no
 * lease is lost.
 */
import assert from "node:assert/strict";
import { sleep, systemClock } from "../../platform/clock.ts";
import type { Store } from "../../store/store.ts";
import { chance, countOf, DELIVERED, retry } from "./fixtures.ts";
import { type Scene, settles } from "./scene.ts";

const MESSAGES = 2_000;

/** Claims and settles until everything is delivered; what is claimed while another holds it fails the case at once. */
async function work(scene: Scene, store: Store, held: Set<string>, delivered: Set<string>, retries: number): Promise<void> {
  let idle = 0;
  while (delivered.size < MESSAGES) {
    const batch = await scene.claim(1, { store, limit: 17 });
    if (batch.length === 0) {
      assert.ok(++idle < 10_000, "messages are left that nobody may claim");
      await sleep(systemClock, 1);
    }
    for (const { id } of batch) {
      assert.ok(!held.has(id) && !delivered.has(id), `${id} was claimed twice`);
      held.add(id);
    }
    const [failing, fine] = [batch.filter(() => chance(retries)), new Set(batch)];
    for (const message of failing) fine.delete(message);
    for (const { id } of failing) held.delete(id);
    for (const { id } of fine) delivered.add(id);
    const results = await store.settle([...settles(failing, retry(0)), ...settles([...fine], DELIVERED)], scene.at(1));
    assert.ok(results.every((result) => result === "settled"));
  }
}

async function contend(scene: Scene, retries: number): Promise<void> {
  for (let from = 0; from < MESSAGES; from += 500) {
    await scene.accept(
      0,
      ...Array.from({ length: 500 }, (_, i) => ({ tenantId: `t${i % 4}`, key: i % 2 ? `k${from + i}` : null })),
    );
  }
  const instances = await scene.instances(8);
  const [held, delivered] = [new Set<string>(), new Set<string>()];
  await Promise.all(instances.map((store) => work(scene, store, held, delivered, retries)));
  assert.equal(delivered.size, MESSAGES);
  assert.equal(await countOf(scene.store, "delivered"), MESSAGES);
  assert.equal(await countOf(scene.store), MESSAGES);
  assert.deepEqual(await scene.store.lanes(scene.at(2)), []);
}

export const contentionCases: Record<string, (scene: Scene) => Promise<void>> = {
  "I3: eight claimers, 2,000 messages: each delivered exactly once": (scene) => contend(scene, 0),

  "I3: eight claimers, 2,000 messages, one attempt in five fails: each delivered exactly once": (scene) => contend(scene, 0.2),

  "enqueue and claim at once: nothing is lost on the way": async (scene) => {
    const [producer, consumer] = await scene.instances(2);
    assert.ok(producer && consumer);
    const accepted = new Set<string>();
    const claimed: string[] = [];
    const produce = async () => {
      for (let i = 0; i < 60; i++) {
        const messages = Array.from({ length: 10 }, () => scene.message());
        for (const { id } of await producer.enqueue(messages, scene.at(0))) accepted.add(id);
      }
    };
    let producing = true;
    const consume = async () => {
      for (let idle = 0; producing || idle < 60; ) {
        const batch = await scene.claim(1, { store: consumer, limit: 25 });
        claimed.push(...batch.map(({ id }) => id));
        idle = batch.length === 0 ? idle + 1 : 0;
        if (batch.length === 0) await sleep(systemClock, claimed.length < 600 ? 20 : 1);
      }
    };
    await Promise.all([
      produce().finally(() => {
        producing = false;
      }),
      consume(),
      consume(),
    ]);
    assert.equal(claimed.length, 600);
    assert.deepEqual(new Set(claimed), accepted);
  },
};
