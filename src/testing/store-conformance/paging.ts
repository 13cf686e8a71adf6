/**
 * Reading back in pages and in numbers: newest first, no gap and no repeat, every filter and all of them together.
 */
import assert from "node:assert/strict";
import { LIMITS } from "../../message/limits.ts";
import type { NewMessage } from "../../message/message.ts";
import type { ListFilter } from "../../store/store.ts";
import { DELIVERED, dead, definition, hold, idsOf, OTHER, PLAIN, refused, retry, seen, sorted } from "./fixtures.ts";
import type { Scene } from "./scene.ts";

async function allPages(scene: Scene, filter: ListFilter): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await scene.store.list({ ...filter, cursor });
    assert.ok(page.data.length <= filter.limit);
    ids.push(...idsOf(page.data));
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined && ids.length < 10_000);
  return ids;
}

const newestFirst = (ids: readonly string[]): string[] => sorted(ids).reverse();

/** One message in every state there is, each with a key that names it. */
async function zoo(scene: Scene): Promise<Map<string, string>> {
  const fields: Partial<NewMessage>[] = [
    { key: "pending", delayMs: 60_000 },
    { key: "processing" },
    { key: "delivered", tenantId: "t1" },
    { key: "open", tenantId: "t1" },
    { key: "resolved", tenantId: "t2" },
    { key: "discarded" },
    { key: "held", topic: OTHER },
    { key: "open", topic: OTHER, tenantId: "t1" },
  ];
  const ids = await scene.accept(0, ...fields);
  const claimed = await scene.take(7, 1);
  const claimOf = (i: number) => claimed.filter(({ id }) => id === ids[i]);
  await scene.settled(2, claimOf(2), DELIVERED);
  for (const i of [3, 4, 5, 7]) await scene.settled(2, claimOf(i), dead());
  await scene.settled(2, claimOf(6), hold());
  const ended = { actor: "person", reason: null, ...scene.at(3) };
  await scene.store.intervene({ id: ids[4]!, action: "resolve", ...ended });
  await scene.store.intervene({ id: ids[5]!, action: "discard", ...ended });
  return new Map(ids.map((id, i) => [id, fields[i]?.topic === OTHER ? `other-${fields[i]?.key}` : (fields[i]?.key ?? "")]));
}

export const pagingCases: Record<string, (scene: Scene) => Promise<void>> = {
  "newest first, page by page, without gap or repeat": async (scene) => {
    const ids = await scene.accept(0, ...Array.from({ length: 23 }, () => ({})));
    assert.deepEqual(await allPages(scene, { limit: 5 }), newestFirst(ids));
    assert.deepEqual(await allPages(scene, { limit: 23 }), newestFirst(ids));
    const last = await scene.store.list({ limit: 50 });
    assert.equal(last.nextCursor, null);
  },

  "a page holds what get() says": async (scene) => {
    await zoo(scene);
    for (const view of (await scene.store.list({ limit: 50 })).data) assert.deepEqual(view, await seen(scene.store, view.id));
  },

  "what arrives or settles meanwhile does not shift the pages": async (scene) => {
    const ids = await scene.accept(0, ...Array.from({ length: 10 }, () => ({})));
    const first = await scene.store.list({ limit: 4 });
    await scene.accept(1, {}, {});
    await scene.settled(3, await scene.take(5, 2), DELIVERED);
    const rest = await scene.store.list({ limit: 50, cursor: first.nextCursor ?? "" });
    assert.deepEqual([...idsOf(first.data), ...idsOf(rest.data)], newestFirst(ids));
  },

  "each filter, and filters together": async (scene) => {
    const names = await zoo(scene);
    const expect = async (filter: Omit<ListFilter, "limit">, ...expected: string[]) => {
      const found = (await allPages(scene, { ...filter, limit: 2 })).map((id) => names.get(id) ?? id);
      assert.deepEqual(sorted(found), sorted(expected), JSON.stringify(filter));
    };
    await expect({ status: "pending" }, "pending", "other-held");
    await expect({ status: "processing" }, "processing");
    await expect({ status: "delivered" }, "delivered");
    await expect({ status: "dead" }, "open", "resolved", "discarded", "other-open");
    await expect({ resolution: "open" }, "open", "other-open");
    await expect({ status: "dead", resolution: "resolved" }, "resolved");
    await expect({ resolution: "discarded" }, "discarded");
    await expect({ topic: OTHER }, "other-held", "other-open");
    await expect({ tenantId: "t1" }, "delivered", "open", "other-open");
    await expect({ key: "open" }, "open", "other-open");
    await expect({ topic: PLAIN, tenantId: "t1", key: "open" }, "open");
    await expect({ topic: PLAIN, tenantId: "t1", status: "dead", resolution: "open", key: "open" }, "open");
    await expect({ tenantId: "t2", status: "delivered" });
    await expect({ topic: "test/unknown" });
    await expect({ status: "pending", resolution: "open" });
  },

  "I10: a page is never larger than pageMax": async (scene) => {
    for (let i = 0; i < 2; i++) await scene.accept(i, ...Array.from({ length: LIMITS.pageMax / 2 + 2 }, () => ({})));
    const page = await scene.store.list({ limit: LIMITS.pageMax * 10 });
    assert.equal(page.data.length, LIMITS.pageMax);
    const rest = await scene.store.list({ limit: LIMITS.pageMax * 10, cursor: page.nextCursor ?? "" });
    assert.equal(rest.data.length, 4);
  },

  "I10: a page without payloads has none": async (scene) => {
    await scene.accept(0, { payload: "[1]" }, { payload: "[2]" });
    const { data } = await scene.store.list({ limit: 10, payload: false });
    assert.deepEqual(
      data.map(({ payload }) => payload),
      ["", ""],
    );
  },

  "a cursor that no page returned is refused with invalid_message": async (scene) => {
    await scene.accept(0);
    for (const cursor of ["nonsense", "%%%", "MQ"]) {
      await refused("invalid_message", () => scene.store.list({ limit: 10, cursor }));
    }
  },

  "I12: counts by topic, status and resolution add up to what was accepted": async (scene) => {
    await zoo(scene);
    const counts = await scene.store.counts({ delivered: true });
    const lines = counts.map(({ topic, status, resolution, count }) => JSON.stringify([topic, status, resolution, count]));
    const expected = [
      [PLAIN, "pending", null, 1],
      [PLAIN, "processing", null, 1],
      [PLAIN, "delivered", null, 1],
      [PLAIN, "dead", "open", 1],
      [PLAIN, "dead", "resolved", 1],
      [PLAIN, "dead", "discarded", 1],
      [OTHER, "pending", null, 1],
      [OTHER, "dead", "open", 1],
    ].map((line) => JSON.stringify(line));
    assert.deepEqual(sorted(lines.filter((line) => !line.endsWith(",0]"))), sorted(expected));
    const usual = (await scene.store.counts()).filter(({ count }) => count > 0);
    assert.equal(usual.length, expected.length - 1, "the delivered are left out unless asked for");
    assert.ok(usual.every(({ status }) => status !== "delivered"));
    assert.ok(counts.every(({ oldestMs }) => oldestMs === null || Number.isFinite(oldestMs)));
  },

  "FIN-28, DF-8: the age in the counts is since creation, however often it was tried and whenever it is due": async (scene) => {
    const oldest = async (): Promise<unknown[]> => {
      const counts = (await scene.store.counts()).filter(({ count }) => count > 0);
      return counts.map(({ status, oldestMs }) => [status, Math.floor((oldestMs ?? -1) / 100_000)]);
    };
    await scene.accept(-250_000, {});
    await scene.accept(-150_000, { delayMs: 36_000_000 });
    assert.deepEqual(await oldest(), [["pending", 2]], "one is due, the other is not");
    const [first] = await scene.take(1, -140_000);
    assert.deepEqual(sorted((await oldest()).map(String)), ["pending,1", "processing,2"], "under a claim");
    await scene.settled(-130_000, [first!], retry(3_600_000, true, 0, true));
    assert.deepEqual(await oldest(), [["pending", 2]], "both wait for a later time");
    const [again] = await scene.take(1, 3_500_000);
    assert.equal(again?.id, first?.id);
    await scene.settled(3_500_001, [again!], dead());
    assert.deepEqual(sorted((await oldest()).map(String)), ["dead,2", "pending,1"]);
  },

  "I2: what was settled stays readable when its topic is deleted": async (scene) => {
    await scene.store.topics.put(definition("test/leaving"), "code");
    const [id] = await scene.accept(0, { topic: "test/leaving" });
    await scene.settled(2, await scene.take(1, 1), DELIVERED);
    assert.equal(await scene.store.topics.delete("test/leaving", "code"), "deleted");
    assert.equal((await seen(scene.store, id as string)).status, "delivered");
    assert.deepEqual(await allPages(scene, { limit: 5, topic: "test/leaving" }), [id]);
  },
};
