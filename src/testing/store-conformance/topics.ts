/**
 * The topics seam: definitions that all workers agree on, pause, disabled sinks, and a breaker that one owner at a time may
 * probe.
 */
import assert from "node:assert/strict";
import type { TopicRecord } from "../../message/topic.ts";
import { DELIVERED, dead, definition, hold, MINUTE, PLAIN, refused, sorted, TOPICS } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

const NAME = "api/topic";
const DEFINITION = {
  ...definition(NAME),
  sink: { kind: "http", url: "https://example.com/in", headers: { "x-a": "1" }, statusMap: { "409": "duplicate" } },
  retry: { policy: "table", tableMs: [1_000, 5_000] },
  schemaVersion: 4,
  concurrency: 10,
  tenantConcurrency: 2,
} as const;

async function put(scene: Scene, change: object = {}, source: "api" | "file" | "code" = "api"): Promise<TopicRecord> {
  const record = await scene.store.topics.put({ ...DEFINITION, ...change }, source);
  assert.notEqual(record, "read_only");
  return record as TopicRecord;
}

async function topic(scene: Scene, ms = 0, name = NAME): Promise<TopicRecord> {
  const record = await scene.store.topics.get(name, scene.at(ms));
  assert.ok(record);
  return record;
}

export const topicCases: Record<string, (scene: Scene) => Promise<void>> = {
  "a definition is read back whole, enabled, unpaused, its breaker closed": async (scene) => {
    await put(scene);
    const { revision, ...record } = await topic(scene);
    assert.ok(Number.isInteger(revision));
    const breaker = { state: "closed", probeInMs: 0, trips: 0, reason: null, tenants: [] };
    assert.deepEqual(record, { ...DEFINITION, source: "api", paused: false, disabledReason: null, breaker });
  },

  "fallback and compensation are kept with their own secrets, and leave with the definition that had them": async (scene) => {
    const hook = (name: string) =>
      ({ kind: "webhook", url: `https://example.com/${name}`, secrets: [`secret of ${name}`, "an older one"] }) as const;
    const sinks = {
      sink: hook("in"),
      fallback: hook("fallback"),
      compensation: { kind: "http", url: "https://example.com/undo" },
    };
    for (const change of [sinks, { ...sinks, sink: DEFINITION.sink }, { ...sinks, fallback: undefined }]) {
      const first = await put(scene, change);
      const { sink, fallback, compensation } = await topic(scene);
      assert.deepEqual({ sink, fallback, compensation }, { ...change });
      assert.deepEqual(await put(scene, change), first, "an equal definition changes nothing");
      const listed = (await scene.store.topics.list(scene.at(0))).find(({ name }) => name === NAME);
      assert.deepEqual(listed?.fallback, change.fallback);
    }
    const before = await put(scene, sinks);
    const rotated = await put(scene, { ...sinks, fallback: { ...sinks.fallback, secrets: ["another secret"] } });
    assert.ok(rotated.revision > before.revision);
    await put(scene);
    const { fallback, compensation } = await topic(scene);
    assert.deepEqual([fallback, compensation], [undefined, undefined]);
  },

  "all topics are listed; an unknown one is null": async (scene) => {
    await put(scene);
    const names = (await scene.store.topics.list(scene.at(0))).map(({ name }) => name);
    assert.deepEqual(sorted(names), sorted([NAME, ...TOPICS.map(({ name }) => name)]));
    assert.equal(await scene.store.topics.get("test/unknown"), null);
  },

  "an equal definition changes nothing; another one raises the revision": async (scene) => {
    const first = await put(scene);
    assert.deepEqual(await put(scene), first);
    assert.deepEqual(
      await put(scene, { sink: { ...DEFINITION.sink, timeoutMs: undefined } }),
      first,
      "absent and undefined are one",
    );
    const second = await put(scene, { concurrency: 11 });
    assert.ok(second.revision > first.revision);
    assert.equal((await topic(scene)).concurrency, 11);
  },

  "the whole definition is replaced: what is left out is gone": async (scene) => {
    await put(scene);
    await put(scene, { sink: { kind: "function" } });
    assert.deepEqual((await topic(scene)).sink, { kind: "function" });
  },

  "the API may not change or delete what the file or code declared; they may change what the API made": async (scene) => {
    for (const source of ["file", "code"] as const) {
      const before = await put(scene, { concurrency: source === "file" ? 1 : 2 }, source);
      assert.equal(before.source, source);
      assert.equal(await scene.store.topics.put({ ...DEFINITION, concurrency: 99 }, "api"), "read_only");
      assert.equal(await scene.store.topics.delete(NAME, "api"), "read_only");
      assert.deepEqual(await topic(scene), before);
    }
    await scene.store.topics.put(definition("api/other"), "api");
    const taken = await scene.store.topics.put({ ...definition("api/other"), concurrency: 5 }, "file");
    assert.equal((taken as TopicRecord).source, "file");
  },

  "pause and resume; null for an unknown topic; a put leaves the pause": async (scene) => {
    await put(scene);
    assert.equal((await scene.store.topics.pause(NAME, true))?.paused, true);
    assert.equal((await put(scene, { concurrency: 3 })).paused, true);
    assert.equal((await scene.store.topics.pause(NAME, false))?.paused, false);
    assert.equal((await topic(scene)).paused, false);
    assert.equal(await scene.store.topics.pause("test/unknown", true), null);
  },

  "a paused topic accepts, and its messages wait": async (scene) => {
    await scene.store.topics.pause(PLAIN, true);
    const [id] = await scene.accept(0);
    assert.equal((await scene.store.get(id as string))?.status, "pending");
  },

  "a disabled sink is enabled by a resume and by a new definition": async (scene) => {
    await put(scene);
    await scene.store.topics.disable(NAME, "410 gone");
    assert.equal((await topic(scene)).disabledReason, "410 gone");
    assert.equal((await scene.store.topics.pause(NAME, false))?.disabledReason, null);
    await scene.store.topics.disable(NAME, "410 again");
    assert.equal((await put(scene, { concurrency: 7 })).disabledReason, null);
    await scene.store.topics.disable(NAME, "410 once more");
    assert.equal((await put(scene, { concurrency: 7 })).disabledReason, null);
    await scene.store.topics.disable("test/unknown", "nobody");
  },

  "delete: not while a message is pending, held, in flight or an open dead letter": async (scene) => {
    const remove = () => scene.store.topics.delete(PLAIN, "code");
    const [id] = await scene.accept(0, { delayMs: 10 });
    assert.equal(await remove(), "in_use", "pending");
    const first = await scene.take(1, 20);
    assert.equal(await remove(), "in_use", "in flight");
    await scene.settled(21, first, hold());
    assert.equal(await remove(), "in_use", "held");
    const by = { id: id as string, actor: "person", reason: null };
    await scene.store.intervene({ ...by, action: "replay", ...scene.at(22) });
    await scene.settled(24, await scene.take(1, 23), dead());
    assert.equal(await remove(), "in_use", "open dead letter");
    await scene.store.intervene({ ...by, action: "resolve", ...scene.at(25) });
    assert.equal(await remove(), "deleted");
    assert.equal(await scene.store.topics.get(PLAIN), null);
    assert.equal(await remove(), "not_found");
    await refused("unknown_topic", () => scene.store.enqueue([scene.message()], scene.at(26)));
  },

  "a deleted topic may be declared again, fresh": async (scene) => {
    await put(scene);
    await scene.store.topics.pause(NAME, true);
    await scene.store.topics.trip(NAME, MINUTE, "down", scene.at(0));
    assert.equal(await scene.store.topics.delete(NAME, "api"), "deleted");
    const again = await put(scene);
    assert.deepEqual([again.paused, again.breaker.state, again.breaker.trips], [false, "closed", 0]);
    const [id] = await scene.accept(1, { topic: NAME });
    const claimed = await scene.takeOne(2);
    assert.equal(claimed.id, id);
    await scene.settled(3, [claimed], DELIVERED);
  },
};
