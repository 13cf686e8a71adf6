/**
 * What workers say of themselves, so that any process can tell who serves a topic: kept for the time they ask for, replaced as a
 * whole, bounded in number, and no reason for others to look again.
 */
import assert from "node:assert/strict";
import { LIMITS } from "../../message/limits.ts";
import type { WorkerNote } from "../../message/worker-note.ts";
import { sleep, systemClock } from "../../platform/clock.ts";
import { DELIVERED, SECOND, sorted } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

const TTL = 30 * SECOND;
const note = (owner: string, more: Partial<WorkerNote> = {}): WorkerNote => ({
  owner,
  patterns: ["*"],
  functions: [],
  unserved: [],
  ...more,
});

async function owners(scene: Scene, ms: number): Promise<string[]> {
  return sorted((await scene.store.topics.workers(scene.at(ms))).map(({ owner }) => owner));
}

export const workerCases: Record<string, (scene: Scene) => Promise<void>> = {
  "what a worker says is read back whole by others, and the next word replaces it": async (scene) => {
    const [, other] = await scene.instances(2);
    const said = note("a", {
      patterns: ["billing/*", "test/plain"],
      functions: ["billing/finalize"],
      unserved: [{ topic: "test/plain", code: "address_refused", error: 'a "loopback" address: ü' }],
    });
    await scene.store.topics.announce(said, TTL, scene.at(0));
    assert.deepEqual(await other?.topics.workers(scene.at(1)), [said]);
    await other?.topics.announce(note("a", { functions: null }), TTL, scene.at(2));
    assert.deepEqual(await scene.store.topics.workers(scene.at(3)), [note("a", { functions: null })]);
  },

  "it holds for the time that was asked for and no longer; saying it again prolongs it": async (scene) => {
    const { topics } = scene.store;
    assert.deepEqual(await topics.workers(scene.at(0)), []);
    await topics.announce(note("a"), TTL, scene.at(0));
    await topics.announce(note("b"), TTL, scene.at(10 * SECOND));
    assert.deepEqual(await owners(scene, 20 * SECOND), ["a", "b"]);
    assert.deepEqual(await owners(scene, 31 * SECOND), ["b"]);
    await topics.announce(note("b"), TTL, scene.at(35 * SECOND));
    assert.deepEqual(await owners(scene, 60 * SECOND), ["b"]);
    assert.deepEqual(await owners(scene, 66 * SECOND), []);
  },

  "who holds a lease and never said anything may serve anything; a worker of the version before does not say": async (scene) => {
    const { topics } = scene.store;
    await scene.accept(0, {}, {}, {});
    const lanes = (await scene.store.lanes(scene.at(1))).map(({ lane }) => ({ lane, limit: 1 }));
    const claim = (owner: string) => scene.store.claim({ owner, leaseMs: TTL, lanes, ...scene.at(1) });
    const held = await claim("worker-before");
    await claim("process-direct");
    await topics.announce(note("worker-said"), TTL, scene.at(1));
    await claim("worker-said");
    assert.deepEqual(await owners(scene, 2), ["worker-before", "worker-said"]);
    const silent = (await topics.workers(scene.at(2))).find(({ owner }) => owner === "worker-before");
    assert.deepEqual(silent, note("worker-before", { functions: null }));
    await scene.settled(3, held, DELIVERED);
    assert.deepEqual(await owners(scene, 4), ["worker-said"]);
  },

  "for no time at all: it is gone at once, and no other": async (scene) => {
    const { topics } = scene.store;
    await topics.announce(note("a"), TTL, scene.at(0));
    await topics.announce(note("b"), TTL, scene.at(0));
    await topics.announce(note("a"), 0, scene.at(1));
    await topics.announce(note("unknown"), 0, scene.at(1));
    assert.deepEqual(await owners(scene, 2), ["b"]);
  },

  "of too many the newest are kept": async (scene) => {
    const { topics } = scene.store;
    const many = LIMITS.workersMax + 5;
    const name = (n: number): string => `w${String(n).padStart(4, "0")}`;
    for (let from = 0; from < many; from += 20) {
      const some = Array.from({ length: Math.min(20, many - from) }, (_, n) => from + n);
      await Promise.all(some.map((n) => topics.announce(note(name(n)), TTL, scene.at(n))));
    }
    const kept = await owners(scene, many);
    assert.ok(kept.length <= LIMITS.workersMax && kept.length > LIMITS.workersMax - 5, `${kept.length} are kept`);
    assert.ok(kept.includes(name(many - 1)) && kept.includes(name(many - 100)), "the newest are among them");
    assert.ok(!kept.includes(name(0)), "the oldest is not");
  },

  "many speak at once, while old ones are forgotten": async (scene) => {
    const instances = await scene.instances(8);
    for (let n = 0; n < 20; n++) await scene.store.topics.announce(note(`old-${n}`), SECOND, scene.at(n));
    const each = instances.flatMap((store, i) => [0, 1, 2].map((k) => ({ store, owner: `w${i}-${k}` })));
    for (const ms of [10 * SECOND, 20 * SECOND]) {
      await Promise.all(each.map(({ store, owner }) => store.topics.announce(note(owner), TTL, scene.at(ms))));
    }
    assert.deepEqual(await owners(scene, 21 * SECOND), sorted(each.map(({ owner }) => owner)));
  },

  "it is no news: no worker looks at the topics again for it": async (scene) => {
    const [, other] = await scene.instances(2);
    let hints = 0;
    const off = [scene.store, other].map((store) => store?.wake(({ kind }) => (hints += kind === "topics" ? 1 : 0)));
    await scene.store.idle("a worker", true);
    // What listening itself brings comes first.
    await sleep(systemClock, 200);
    hints = 0;
    await scene.store.topics.announce(note("a"), TTL, scene.at(0));
    await scene.store.topics.announce(note("a"), 0, scene.at(1));
    await sleep(systemClock, 50);
    assert.equal(hints, 0);
    for (const stop of off) stop?.();
  },
};
