/**
 * `makegood.enqueue(…)` in plain SQL, as any other language calls it: in its own transaction, with the same deduplication,
 * conflicts and refusals as the TypeScript client, and the same bytes out. Runs on every major.
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createMakegood, type Makegood, type MessageView, topic } from "../../src/index.ts";
import { LIMITS } from "../../src/message/limits.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import type { WakeHint } from "../../src/store/store.ts";
import { PAYLOADS } from "../adapters/support/payloads.ts";
import { databaseUrl, dropSchema, freshSchema, withClient } from "../support/postgres.ts";

const TOPIC = "sql/orders";
const ORDERED = "sql/ordered";

interface Enqueued {
  readonly id: string;
  readonly inserted: boolean;
}

describe("the SQL function enqueue", () => {
  const schema = freshSchema();
  const received: { id: string; payload: string; key: string | null; tenantId: string | null }[] = [];
  let mg: Makegood;
  let client: pg.Client;

  beforeAll(async () => {
    const sink = (_: unknown, { id, payload, key, tenantId }: (typeof received)[number]) =>
      void received.push({ id, payload, key, tenantId });
    const topics = [topic(TOPIC, { sink, schemaVersion: 3, ordering: "none" }), topic(ORDERED, { sink })];
    mg = await createMakegood({ store: createPostgresStore({ url: databaseUrl(), schema }), topics, pollMs: 50 });
  });

  beforeEach(async () => {
    client = new pg.Client({ connectionString: databaseUrl() });
    await client.connect();
    await client.query("begin");
  });

  afterEach(() => client.end());

  afterAll(async () => {
    await mg.close();
    await dropSchema(schema);
  });

  /** Named arguments, as the documentation shows them. */
  async function enqueue(fields: Readonly<Record<string, unknown>>, on: pg.Client = client): Promise<Enqueued> {
    const all: Record<string, unknown> = { topic: TOPIC, ...fields };
    const names = Object.keys(all).map((name, i) => `${name} => $${i + 1}`);
    const { rows } = await on.query(`select * from "${schema}".enqueue(${names.join(", ")})`, Object.values(all));
    return rows[0];
  }

  const refused = (fields: Readonly<Record<string, unknown>>, code: string, message: RegExp): Promise<void> =>
    expect(enqueue(fields)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });

  const rows = async (): Promise<number> =>
    Number((await withClient((c) => c.query(`select count(*) as n from "${schema}".message`))).rows[0].n);

  async function arrived(id: string): Promise<(typeof received)[number]> {
    for (const end = performance.now() + 10_000; performance.now() < end; await sleep(5)) {
      const found = received.find((delivery) => delivery.id === id);
      if (found) return found;
    }
    return expect.fail(`message ${id} was not delivered`);
  }

  it("commit: accepted with the business row, visible after it, with everything it was given", async () => {
    const { id, inserted } = await enqueue({
      payload: '{"n": 1}',
      key: "commit",
      tenant_id: "acme",
      delay_ms: 60_000,
      priority: 7,
    });
    expect(inserted).toBe(true);
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(await mg.store.get(id), "visible before the commit").toBeNull();
    await client.query("commit");
    const view = (await mg.store.get(id)) as MessageView;
    expect(view).toMatchObject({
      topic: TOPIC,
      payload: '{"n": 1}',
      key: "commit",
      tenantId: "acme",
      priority: 7,
      orderingKey: null,
      schemaVersion: 3,
      status: "pending",
      attempts: 0,
    });
    expect(Number(view.nextAttemptAt) - Number(view.createdAt)).toBe(60_000);
  });

  it("rollback: nothing, and the key stays free", async () => {
    const before = await rows();
    const { id } = await enqueue({ payload: "1", key: "rollback" });
    await client.query("rollback");
    expect(await mg.store.get(id)).toBeNull();
    expect(await rows()).toBe(before);
    expect((await mg.enqueue(TOPIC, "another", { key: "rollback" })).inserted).toBe(true);
  });

  it("ids of one session rise", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 50; i++) ids.push((await enqueue({ payload: String(i) })).id);
    expect(ids.every((id, i) => i === 0 || id > (ids[i - 1] as string))).toBe(true);
    expect(new Set(ids).size).toBe(50);
    await client.query("rollback");
  });

  it("the same key and payload: the first one's id, inserted false; per topic and tenant", async () => {
    const first = await enqueue({ payload: "[1]", key: "again" });
    expect(await enqueue({ payload: "[1]", key: "again" })).toEqual({ id: first.id, inserted: false });
    expect((await enqueue({ payload: "[1]", key: "again", tenant_id: "t" })).inserted).toBe(true);
    expect((await enqueue({ topic: ORDERED, payload: "[1]", key: "again" })).inserted).toBe(true);
    await client.query("commit");
  });

  it("the same key with another payload is a conflict that names the first message, and a savepoint saves the rest", async () => {
    const first = await enqueue({ payload: '{"a":1}', key: "conflict" });
    await client.query("savepoint mine");
    await refused({ payload: '{"a": 1}', key: "conflict" }, "23505", new RegExp(`key_conflict.*${first.id}`));
    await client.query("rollback to savepoint mine");
    const after = await enqueue({ payload: "2" });
    await client.query("commit");
    expect((await mg.store.get(first.id))?.payload).toBe('{"a":1}');
    expect((await mg.store.get(after.id))?.status).toBe("pending");
  });

  it("agrees with the client about keys and payloads, both ways", async () => {
    const texts = Object.values(PAYLOADS);
    for (const [i, payloadText] of texts.entries()) {
      const bySql = await enqueue({ payload: payloadText, key: `sql ${i} é💶` });
      await client.query("commit; begin");
      const [again] = await mg.enqueueText([{ topic: TOPIC, payloadText, key: `sql ${i} é💶` }]);
      expect(again, payloadText.slice(0, 60)).toEqual({ id: bySql.id, inserted: false });

      const [byClient] = await mg.enqueueText([{ topic: TOPIC, payloadText, key: `client ${i} é💶` }]);
      expect(await enqueue({ payload: payloadText, key: `client ${i} é💶` })).toEqual({ id: byClient?.id, inserted: false });
    }
    const other = mg.enqueueText([{ topic: TOPIC, payloadText: "[]", key: "sql 0 é💶" }]);
    await expect(other).rejects.toMatchObject({ code: "key_conflict" });
    await refused({ payload: "[]", key: "client 0 é💶" }, "23505", /key_conflict/);
  });

  it("a concurrent duplicate waits for the first transaction and gets its answer", async () => {
    const first = await enqueue({ payload: "5", key: "race" });
    const second = withClient((other) => enqueue({ payload: "5", key: "race" }, other));
    const third = mg.enqueue(TOPIC, 5, { key: "race" });
    await sleep(50);
    await client.query("commit");
    expect(await second).toEqual({ id: first.id, inserted: false });
    expect(await third).toEqual({ id: first.id, inserted: false });
  });

  it.each([
    ["an unknown topic", { topic: "sql/nobody", payload: "1" }, "22023", /unknown_topic: there is no topic sql\/nobody/],
    ["a payload that is not JSON", { payload: "{nope" }, "22P02", /invalid input syntax for type json/],
    ["an empty payload", { payload: "" }, "22P02", /invalid input syntax for type json/],
    ["no payload", { payload: null }, "22023", /invalid_payload/],
    ["a payload over the limit", { payload: `"${"é".repeat(LIMITS.payloadBytesMax / 2)}"` }, "22023", /payload_too_large/],
    ["an empty key", { payload: "1", key: "" }, "22023", /key_too_long/],
    ["a key over the limit", { payload: "1", key: "é".repeat(128) }, "22023", /key_too_long/],
    ["a key of 10 kB", { payload: "1", key: "k".repeat(10_240) }, "22023", /key_too_long/],
    ["a key with a control character", { payload: "1", key: "a\nb" }, "22023", /control characters/],
    ["an empty tenant", { payload: "1", tenant_id: "" }, "22023", /invalid_message/],
    ["an ordering key over the limit", { payload: "1", ordering_key: "k".repeat(300) }, "22023", /invalid_message/],
    ["a priority out of range", { payload: "1", priority: 101 }, "22023", /invalid_message/],
    ["a negative delay", { payload: "1", delay_ms: -1 }, "22023", /invalid_message/],
    ["a delay of years", { payload: "1", delay_ms: LIMITS.delayMsMax + 1 }, "22023", /invalid_message/],
  ])("refuses %s and writes nothing", async (_, fields, code, message) => {
    const before = await rows();
    await refused(fields, code, message);
    await client.query("commit");
    expect(await rows()).toBe(before);
  });

  it("takes a payload and a key of exactly the limit", async () => {
    const payload = `"${"x".repeat(LIMITS.payloadBytesMax - 2)}"`;
    const { id } = await enqueue({ payload, key: "k".repeat(LIMITS.keyBytesMax), delay_ms: 60_000 });
    await client.query("commit");
    expect((await mg.store.get(id))?.payload).toBe(payload);
  });

  it("nudges a waiting worker by NOTIFY, at the commit and not before", async () => {
    if (mg.store.traits.wake !== "push") expect.fail("this suite needs a direct connection");
    await mg.store.idle("sql-function-test", true);
    const hints: WakeHint[] = [];
    const off = mg.store.wake((hint) => hints.push(hint));
    // A tenant of its own: hints of what was before, and of a worker that begins to wait, may still come.
    const { id } = await enqueue({ payload: '"wake"', delay_ms: 60_000, tenant_id: "wake" });
    const { rows: made } = await client.query(`select lane_id::text as lane from "${schema}".message where id = $1`, [id]);
    const nudges = () => hints.filter((hint) => hint.kind === "work" && hint.lane === made[0].lane);
    await sleep(50);
    expect(nudges()).toEqual([]);
    await client.query("commit");
    await expect.poll(() => nudges().length, { timeout: 15_000 }).toBe(1);
    off();
    await mg.store.idle("sql-function-test", false);
  });

  it("what it accepted is delivered byte for byte, keys in order where the topic keeps order", async () => {
    const texts = Object.values(PAYLOADS);
    const ids: string[] = [];
    for (const payload of texts) ids.push((await enqueue({ payload })).id);
    const inOrder: string[] = [];
    for (let i = 0; i < 10; i++)
      inOrder.push((await enqueue({ topic: ORDERED, payload: `${i}`, ordering_key: "one", priority: 9 - i })).id);
    const free = await enqueue({ payload: '"unordered"', ordering_key: "ignored here" });
    await client.query("commit");
    expect((await mg.store.get(inOrder[0] as string))?.orderingKey).toBe("one");
    expect((await mg.store.get(free.id))?.orderingKey).toBeNull();
    const worker = mg.work();
    for (const [i, id] of ids.entries()) expect((await arrived(id)).payload).toBe(texts[i]);
    await arrived(free.id);
    await arrived(inOrder[9] as string);
    await worker.stop();
    expect(received.filter(({ id }) => inOrder.includes(id)).map(({ id }) => id)).toEqual(inOrder);
  });
});
