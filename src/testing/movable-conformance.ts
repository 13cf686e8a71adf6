/**
 * The conformance suite of the seam for moving messages (store/movable.ts): what is read of one store and put into another is there
 * as it was, and goes on from that. It knows no test runner, as the store's own suite.
 */
import assert from "node:assert/strict";
import { type MovableMessage, movableOf } from "../store/movable.ts";
import type { Store } from "../store/store.ts";
import {
  DELIVERED,
  dead,
  hold,
  idsOf,
  KEYED,
  PLAIN,
  refused,
  retry,
  SECOND,
  STRICT,
  seen,
  sorted,
  TOPICS,
} from "./store-conformance/fixtures.ts";
import type { Case, StoreHarness } from "./store-conformance/harness.ts";
import { play, type Scene, verbs } from "./store-conformance/scene.ts";

const PAGE = { limit: 100, bytesMax: 1_000_000 };

function movableIn(store: Store) {
  const movable = movableOf(store);
  assert.ok(movable, "the store should have the seam");
  return movable;
}

/** Page after page; `between` runs after each. */
async function readAll(store: Store, how: { all: boolean; limit?: number; bytesMax?: number }, between = async () => {}) {
  const read: MovableMessage[] = [];
  let after: string | undefined;
  do {
    const page = await movableIn(store).read({ ...PAGE, ...how, after });
    read.push(...page.messages);
    after = page.next ?? undefined;
    await between();
  } while (after !== undefined);
  return read;
}

const byId = (messages: readonly MovableMessage[]) => [...messages].sort((a, b) => (a.id < b.id ? -1 : 1));

/** Everything that a message can be, by what it is called. */
export async function everything({ accept, take, takeOne, settled, store, at, message }: Scene) {
  const ids: Record<string, string> = {};
  const first = async (name: string, fields: Parameters<Scene["message"]>[0] = {}) => {
    [ids[name]] = (await accept(0, fields)) as [string];
  };
  await first("delivered", { key: "k-delivered" });
  await settled(1, [await takeOne(1)], DELIVERED);
  for (const name of ["resolved", "discarded", "open", "replayed"]) {
    await first(name);
    await settled(2, [await takeOne(2)], dead());
    const action = { resolved: "resolve", discarded: "discard", replayed: "replay" } as const;
    const id = ids[name] as string;
    if (name !== "open")
      await store.intervene({ id, action: action[name as keyof typeof action], actor: "ann", reason: "why", ...at(3) });
  }
  await settled(4, [await takeOne(4)], retry(9 * SECOND, true, 0, true));
  await first("suspect");
  await settled(5, [await takeOne(5)], retry(0, true, 2));
  await first("held");
  await settled(6, [await takeOne(6, { lanes: ({ suspicion }) => suspicion === 0 })], hold());
  await first("blocking", { topic: STRICT, orderingKey: "o" });
  await settled(7, [await takeOne(7, { lanes: ({ topic }) => topic === STRICT })], dead(true));
  await first("blocked", { topic: STRICT, orderingKey: "o" });
  await first("flying");
  await take(1, 8, { lanes: ({ suspicion, topic }) => suspicion === 0 && topic === PLAIN });
  await first("head", { topic: KEYED, orderingKey: "o", tenantId: "t" });
  await first("second", { topic: KEYED, orderingKey: "o", tenantId: "t" });
  const full = message({
    key: "k-1",
    tenantId: "t",
    priority: 7,
    delayMs: 5 * SECOND,
    schemaVersion: 3,
    payload: ' {"a": 1.10} ',
  });
  await store.enqueue(
    [{ ...full, traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`, directTry: { code: "http_503", error: "x" } }],
    at(9),
  );
  ids.full = full.id;
  return ids as Record<keyof typeof EXPECTED, string>;
}

const EXPECTED = {
  delivered: { status: "delivered", attempts: 1, key: "k-delivered" },
  resolved: { status: "dead", resolution: "resolved", attempts: 1 },
  discarded: { status: "dead", resolution: "discarded", attempts: 1 },
  open: { status: "dead", resolution: "open", attempts: 1, settledAt: null },
  replayed: { status: "pending", generation: 1, attempts: 2, base: 1, retried: true, suspicion: 0 },
  suspect: { status: "pending", attempts: 1, base: 0, suspicion: 2 },
  held: { status: "pending", attempts: 1, heldReason: "outcome_unknown", nextAttemptAt: null },
  blocking: { status: "dead", resolution: "open", blocksOrder: true, orderingKey: "o" },
  blocked: { status: "pending", attempts: 0, blocksOrder: false },
  flying: { status: "processing", attempts: 1 },
  head: { status: "pending", attempts: 0, tenantId: "t" },
  second: { status: "pending", attempts: 0, tenantId: "t" },
  full: { status: "pending", priority: 7, schemaVersion: 3, payload: ' {"a": 1.10} ', key: "k-1", handedDown: true, attempts: 0 },
} as const;
const SETTLED: readonly (keyof typeof EXPECTED)[] = ["delivered", "resolved", "discarded"];

/** A second store of the same kind, with the same topics; what was in flight is left out. */
async function moved(
  scene: Scene,
  run: (target: Store, ids: Awaited<ReturnType<typeof everything>>, read: MovableMessage[]) => Promise<void>,
) {
  const ids = await everything(scene);
  const read = (await readAll(scene.store, { all: true })).filter(({ status }) => status !== "processing");
  const target = await scene.harness.open();
  try {
    for (const topic of TOPICS) await target.topics.put(topic, "code");
    assert.deepEqual(
      await movableIn(target).put(read),
      read.map(({ id }) => ({ kind: "put", id })),
    );
    await run(target, ids, read);
  } finally {
    await target.close();
  }
}

const cases: Record<string, (scene: Scene) => Promise<void>> = {
  "reads each message as it stands, the settled only when asked for": async (scene) => {
    const ids = await everything(scene);
    const all = new Map((await readAll(scene.store, { all: true })).map((one) => [one.id, one]));
    assert.deepEqual(sorted([...all.keys()]), sorted(Object.values(ids)));
    for (const [name, expected] of Object.entries(EXPECTED)) {
      const one = all.get(ids[name as keyof typeof EXPECTED]) as MovableMessage;
      const found = Object.fromEntries(Object.keys(expected).map((field) => [field, one[field as keyof MovableMessage]]));
      assert.deepEqual(found, expected, name);
      const { lastError, lastCode, ...shown } = await seen(scene.store, one.id);
      const same = Object.fromEntries(Object.keys(shown).map((field) => [field, one[field as keyof MovableMessage]]));
      assert.deepEqual(same, shown, name);
      assert.deepEqual({ attempts: one.history, provenance: one.provenance }, await scene.store.history(one.id), name);
      assert.equal(one.settledAt !== null, SETTLED.includes(name as keyof typeof EXPECTED), name);
    }
    const places = [ids.head, ids.second].map((id) => all.get(id)?.place ?? -1);
    assert.ok((places[0] as number) < (places[1] as number), `places ${places}`);
    const open = await readAll(scene.store, { all: false });
    const settled = SETTLED.map((name) => ids[name]);
    assert.deepEqual(sorted(idsOf(open)), sorted(Object.values(ids).filter((id) => !settled.includes(id))));
    assert.deepEqual(byId(await movableIn(scene.store).find(idsOf(open))), byId(open));
  },

  "puts them so that they are read back the same": (scene) =>
    moved(scene, async (target, _, read) => {
      assert.deepEqual(byId(await readAll(target, { all: true })), byId(read));
      for (const one of read) {
        const { lastError, lastCode, ...shown } = await seen(target, one.id);
        const before = await seen(scene.store, one.id);
        assert.deepEqual({ ...shown, lastError, lastCode }, before);
      }
      const countsOf = async (store: Store) =>
        sorted(
          (await store.counts({ delivered: true }))
            .filter(({ status }) => status !== "processing")
            .map(({ topic, status, resolution, count }) => JSON.stringify([topic, status, resolution, count])),
        );
      assert.deepEqual(await countsOf(target), await countsOf(scene.store));
    }),

  "what was put goes on from where it stood": (scene) =>
    moved(scene, async (target, ids) => {
      const there = verbs(target);
      const ms = 60 * SECOND;
      const taken = await there.take(3, ms, { lanes: ({ suspicion }) => suspicion === 0 });
      const found = taken.map(({ id, attempt, base, handedDown, retried }) => [id, { attempt, base, handedDown, retried }]);
      assert.deepEqual(Object.fromEntries(found), {
        [ids.replayed]: { attempt: 3, base: 1, handedDown: false, retried: true },
        [ids.full]: { attempt: 1, base: 0, handedDown: true, retried: false },
        [ids.head]: { attempt: 1, base: 0, handedDown: false, retried: false },
      });
      const suspect = await there.takeOne(ms);
      assert.deepEqual([suspect.id, suspect.suspicion, suspect.attempt], [ids.suspect, 2, 2]);
      await there.nothing(ms);
      await there.settled(ms, taken, DELIVERED);
      assert.equal((await there.takeOne(ms)).id, ids.second, "the next of its ordering key");
      await target.intervene({ id: ids.blocking, action: "resolve", actor: "ann", reason: null, ...there.at(ms) });
      assert.equal((await there.takeOne(ms)).id, ids.blocked, "its key was closed by the dead one before it");
      await target.intervene({ id: ids.held, action: "replay", actor: "ann", reason: null, ...there.at(ms) });
      const held = await there.takeOne(ms);
      assert.deepEqual([held.id, held.attempt, held.base], [ids.held, 2, 1]);
      await target.intervene({ id: ids.open, action: "replay", actor: "ann", reason: null, ...there.at(ms) });
      assert.equal((await there.takeOne(ms)).id, ids.open);
      const { attempts } = await target.history(ids.replayed);
      assert.deepEqual(
        attempts.map(({ outcome }) => outcome),
        ["reject", "retry", "delivered"],
      );
      // Resolved and discarded, and what was delivered here: as they were settled, by their own times.
      assert.equal(await target.prune({ keptMs: 24 * 3_600 * SECOND, limit: 100, ...there.at(ms) }), 0);
    }),

  "keys go on protecting": (scene) =>
    moved(scene, async (target, ids) => {
      const there = verbs(target);
      const again = there.message({ key: "k-delivered", payload: (await seen(target, ids.delivered)).payload });
      const other = there.message({ key: "k-1", tenantId: "t", payload: '"other"' });
      const accepted = await target.enqueue([again, other], { atomic: "each" });
      assert.deepEqual(accepted, [
        { kind: "duplicate", id: ids.delivered },
        { kind: "conflict", id: ids.full },
      ]);
    }),

  "put again changes nothing, whatever became of it": (scene) =>
    moved(scene, async (target, ids, read) => {
      const there = verbs(target);
      const taken = await there.take(3, 60 * SECOND, { lanes: ({ suspicion }) => suspicion === 0 });
      await there.settled(60 * SECOND, taken, DELIVERED);
      const before = byId(await readAll(target, { all: true }));
      const results = await movableIn(target).put(read);
      assert.deepEqual(
        results,
        read.map(({ id }) => ({ kind: "present", id })),
      );
      assert.deepEqual(byId(await readAll(target, { all: true })), before);
      assert.equal((await seen(target, ids.full)).status, "delivered");
    }),

  "what the store has under the same id or key is not touched": async ({ store, message, at }) => {
    const [first, second, third] = [message({ key: "a" }), message({ key: "b" }), message()] as const;
    await store.enqueue([first, second, third], at(0));
    const [a, b, c] = byId(await readAll(store, { all: false })) as [MovableMessage, MovableMessage, MovableMessage];
    const before = await readAll(store, { all: true });
    const results = await movableIn(store).put([
      { ...a, id: message().id },
      { ...b, id: message().id, payload: '"x"' },
      { ...c, payload: '"x"' },
    ]);
    assert.deepEqual(results, [
      { kind: "duplicate", id: first.id },
      { kind: "conflict", id: second.id },
      { kind: "conflict", id: third.id },
    ]);
    assert.deepEqual(await readAll(store, { all: true }), before);
  },

  "pages hold each message once, while messages move": async (scene) => {
    const payload = `"${"x".repeat(1_000)}"`;
    const ids = await scene.accept(0, ...Array.from({ length: 30 }, () => ({ payload })));
    const settleOne = async () => scene.settled(1, [await scene.takeOne(1)], dead());
    const byBytes = await readAll(scene.store, { all: false, bytesMax: 2_500 }, settleOne);
    assert.deepEqual(sorted(idsOf(byBytes)), sorted(ids));
    const first = await movableIn(scene.store).read({ ...PAGE, all: true, bytesMax: 2_500 });
    assert.equal(first.messages.length, 2);
    const alone = await movableIn(scene.store).read({ ...PAGE, all: true, bytesMax: 1 });
    assert.equal(alone.messages.length, 1);
    assert.deepEqual(sorted(idsOf(await readAll(scene.store, { all: true, limit: 7 }))), sorted(ids));
  },

  "of two that put at once each message is put by one": async (scene) => {
    const messages = Array.from({ length: 40 }, (_, i) => scene.message({ key: i % 2 === 0 ? `k-${i}` : null }));
    const source = await scene.harness.open();
    try {
      for (const topic of TOPICS) await source.topics.put(topic, "code");
      await source.enqueue(messages);
      const read = byId(await readAll(source, { all: false }));
      const puts = await Promise.all((await scene.instances(4)).map((store) => movableIn(store).put(read)));
      for (const [i, { id }] of read.entries()) {
        const kinds = puts.map((results) => results[i]?.kind);
        assert.deepEqual(sorted(kinds as string[]), ["present", "present", "present", "put"], id);
      }
      assert.deepEqual(byId(await readAll(scene.store, { all: false })), read);
    } finally {
      await source.close();
    }
  },

  "what is accepted later comes after what was put": async ({ store, accept, at, takeOne, settled }) => {
    const [id] = (await accept(0, { topic: KEYED, orderingKey: "o" })) as [string];
    const [one] = (await readAll(store, { all: false })) as [MovableMessage];
    await store.intervene({ id, action: "discard", actor: "ann", reason: null, ...at(1) });
    const put = verbs(store).id();
    await movableIn(store).put([{ ...one, id: put, place: (one.place ?? 0) + 5_000_000 }]);
    const [later] = (await accept(2, { topic: KEYED, orderingKey: "o" })) as [string];
    const first = await takeOne(3);
    assert.equal(first.id, put);
    await settled(3, [first], DELIVERED);
    assert.equal((await takeOne(3)).id, later);
  },

  "what is in flight and what has no topic is refused": async (scene) => {
    await scene.accept(0, {});
    await scene.takeOne(1);
    const [flying] = (await readAll(scene.store, { all: false })) as [MovableMessage];
    const id = scene.id();
    await refused("invalid_message", () => movableIn(scene.store).put([{ ...flying, id }]));
    await refused("unknown_topic", () => movableIn(scene.store).put([{ ...flying, id, status: "pending", topic: "no/where" }]));
    assert.deepEqual(await movableIn(scene.store).find([id]), []);
  },
};

/** The cases an engine of the seam must pass; each opens fresh stores and closes them again. */
export function movableConformance(harness: StoreHarness): Case[] {
  return Object.entries(cases).map(([name, run]) => ({ group: "move", name, run: () => play(harness, run) }));
}
