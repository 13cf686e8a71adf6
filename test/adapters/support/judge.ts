/**
 * What every library must show with its own transactions: the message exists if and only if the business row does, keys are
 * deduplicated inside of it, a refusal leaves it usable, payloads arrive byte for byte, and what is no transaction is refused.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createMakegood, type Makegood, topic } from "../../../src/index.ts";
import { createPostgresStore } from "../../../src/store/postgres/index.ts";
import type { Transaction } from "../../../src/store/store.ts";
import { databaseUrl, dropSchema, freshSchema, withClient } from "../../support/postgres.ts";
import type { Library, LibraryKind } from "./library.ts";
import { KEYS, PAYLOADS } from "./payloads.ts";

const TOPIC = "shop/orders";

export function judge(kind: LibraryKind): void {
  const schema = freshSchema();
  const received = new Map<string, string>();
  let mg: Makegood;
  let library: Library;

  beforeAll(async () => {
    const orders = topic(TOPIC, { sink: (_, { id, payload }) => void received.set(id, payload) });
    mg = await createMakegood({
      store: createPostgresStore({ url: databaseUrl(), schema, poolMax: 4 }),
      topics: [orders],
      pollMs: 50,
    });
    opened.push(mg);
    await withClient((client) => client.query(`create table "${schema}".business (note text primary key)`));
    library = await kind.open(databaseUrl(), schema);
    opened.push(library);
    mg.work();
  });

  const opened: { close(): Promise<unknown> }[] = [];
  afterAll(async () => {
    for (const each of opened.reverse()) await each.close();
    await dropSchema(schema);
  });

  const ask = (text: string, values: unknown[] = []): Promise<pg.QueryResult["rows"]> =>
    withClient(async (client) => (await client.query(text, values)).rows);
  const written = async (note: string): Promise<boolean> =>
    (await ask(`select 1 from "${schema}".business where note = $1`, [note])).length === 1;
  const messages = async (): Promise<number> =>
    Number((await ask(`select count(*) as n from "${schema}".message`))[0].n) +
    Number((await ask(`select count(*) as n from "${schema}".message_kept`))[0].n);

  async function arrived(id: string): Promise<string> {
    for (const end = performance.now() + 10_000; performance.now() < end; await sleep(5)) {
      const payload = received.get(id);
      if (payload !== undefined) return payload;
    }
    expect.fail(`message ${id} was not delivered`);
  }

  it("commit: the business row is there and the message is delivered", async () => {
    const { id, inserted } = await library.transaction(async ({ tx, write }) => {
      await write("commit");
      const result = await mg.enqueue(TOPIC, { n: 1 }, { tx });
      expect(await mg.store.get(result.id), "visible before the commit").toBeNull();
      return result;
    });
    expect(inserted).toBe(true);
    expect(await arrived(id)).toBe('{"n":1}');
    expect(await written("commit")).toBe(true);
  });

  it("rollback: neither the row nor the messages, and their keys stay free", async () => {
    const before = await messages();
    const ids: string[] = [];
    const failed = library.transaction(async ({ tx, write }) => {
      ids.push((await mg.enqueue(TOPIC, 1, { tx, key: "rolled-back" })).id);
      const batch = [{ payload: 2, key: "rolled-back-2" }, { payload: 3 }];
      ids.push(...(await mg.enqueueMany(TOPIC, batch, { tx })).map(({ id }) => id));
      await write("rollback");
      throw new Error("the business said no");
    });
    await expect(failed).rejects.toThrow("the business said no");
    expect(await written("rollback")).toBe(false);
    expect(await messages()).toBe(before);
    for (const id of ids) expect(await mg.store.get(id)).toBeNull();
    expect((await mg.enqueue(TOPIC, "another", { key: "rolled-back" })).inserted).toBe(true);
  });

  it("a batch with keys, delays, tenants and ordering keys", async () => {
    const batch = [
      { payload: "a", key: "batch-a" },
      { payload: "b", key: "batch-b", tenantId: "tenant ?" },
      { payload: "c" },
      { payload: "d", orderingKey: "order $1" },
      { payload: "e", key: "batch-e", orderingKey: "order $1", priority: 5 },
      { payload: "a", key: "batch-a" },
    ];
    const results = await library.transaction(async ({ tx, write }) => {
      await write("batch");
      return mg.enqueueMany(TOPIC, batch, { tx });
    });
    expect(results.map(({ inserted }) => inserted)).toEqual([true, true, true, true, true, false]);
    expect(results[5]?.id).toBe(results[0]?.id);
    expect(await Promise.all(results.map(({ id }) => arrived(id)))).toEqual(batch.map(({ payload }) => JSON.stringify(payload)));
    expect(await written("batch")).toBe(true);
  });

  it("a key that exists with the same payload: inserted is false and the first one's id comes back", async () => {
    const first = await mg.enqueue(TOPIC, { once: true }, { key: "twice" });
    const [again, inBatch, own] = await library.transaction(async ({ tx }) => {
      const one = await mg.enqueue(TOPIC, { once: true }, { tx, key: "twice" });
      const [two] = await mg.enqueueMany(TOPIC, [{ payload: { once: true }, key: "twice" }, { payload: 1 }], { tx });
      await mg.enqueue(TOPIC, 7, { tx, key: "mine" });
      return [one, two, await mg.enqueue(TOPIC, 7, { tx, key: "mine" })];
    });
    expect(again).toEqual({ id: first.id, inserted: false });
    expect(inBatch).toEqual({ id: first.id, inserted: false });
    expect(own).toMatchObject({ inserted: false });
  });

  it("a key that exists with another payload is refused, and the transaction goes on", async () => {
    const first = await mg.enqueue(TOPIC, "first", { key: "taken" });
    const before = await messages();
    const after = await library.transaction(async ({ tx, write }) => {
      const refusal = { code: "key_conflict", detail: { id: first.id } };
      await expect(mg.enqueue(TOPIC, "other", { tx, key: "taken" })).rejects.toMatchObject(refusal);
      const batch = [{ payload: 1, key: "beside-a-conflict" }, { payload: "other", key: "taken" }, { payload: 2 }];
      await expect(mg.enqueueMany(TOPIC, batch, { tx })).rejects.toMatchObject({ code: "key_conflict" });
      await write("conflict");
      return mg.enqueue(TOPIC, "goes on", { tx });
    });
    expect(await written("conflict")).toBe(true);
    expect(await arrived(after.id)).toBe('"goes on"');
    expect(await messages(), "the rest of the refused batch was not written").toBe(before + 1);
  });

  it("payloads and keys arrive byte for byte, one by one and as a batch", async () => {
    const texts = Object.values(PAYLOADS);
    const single = await library.transaction(async ({ tx }) => {
      const ids: string[] = [];
      for (const [i, payloadText] of texts.entries()) {
        const key = `${KEYS[i % KEYS.length]} ${i}`;
        const [result] = await mg.enqueueText([{ topic: TOPIC, payloadText, key }], { tx });
        ids.push(result?.id as string);
        expect(await mg.enqueueText([{ topic: TOPIC, payloadText, key }], { tx })).toEqual([{ id: result?.id, inserted: false }]);
      }
      return ids;
    });
    const batch = await library.transaction(({ tx }) =>
      mg.enqueueText(
        texts.map((payloadText, i) => ({ topic: TOPIC, payloadText, key: `batch ${KEYS[i % KEYS.length]} ${i}` })),
        { tx },
      ),
    );
    const plain = await library.transaction(({ tx }) =>
      mg.enqueueText(
        texts.map((payloadText) => ({ topic: TOPIC, payloadText })),
        { tx },
      ),
    );
    for (const [i, name] of Object.keys(PAYLOADS).entries()) {
      expect(await arrived(single[i] as string), name).toBe(texts[i]);
      expect(await arrived(batch[i]?.id as string), `${name}, in a batch`).toBe(texts[i]);
      expect(await arrived(plain[i]?.id as string), `${name}, without a key`).toBe(texts[i]);
      const view = await mg.store.get(single[i] as string);
      expect(view?.key).toBe(`${KEYS[i % KEYS.length]} ${i}`);
    }
  });

  async function conflictInASnapshot(): Promise<void> {
    const undone = library.transaction(async ({ tx }) => {
      await tx.query("set transaction isolation level repeatable read");
      await tx.query("select 1 as a");
      await mg.enqueue(TOPIC, 1, { key: "after the snapshot" });
      await mg.enqueue(TOPIC, 1, { tx, key: "after the snapshot" });
    });
    await expect(undone).rejects.toMatchObject({ name: "MakegoodError", code: "retry_transaction", retryable: true });
  }
  if (!kind.nested) it("a conflict that undoes the transaction is told as retry_transaction", conflictInASnapshot);

  async function refuses(tx: Transaction, expected: object): Promise<void> {
    const before = await messages();
    const batch = [{ payload: 1, key: "not in a transaction" }, { payload: 2 }];
    await expect(mg.enqueue(TOPIC, 1, { tx })).rejects.toMatchObject(expected);
    await expect(mg.enqueue(TOPIC, 1, { tx, key: "not in a transaction" })).rejects.toMatchObject(expected);
    await expect(mg.enqueueMany(TOPIC, [{ payload: 1 }, { payload: 2 }], { tx })).rejects.toMatchObject(expected);
    await expect(mg.enqueueMany(TOPIC, batch, { tx })).rejects.toMatchObject(expected);
    expect(await messages()).toBe(before);
  }

  it("what is no transaction is refused, and nothing is written", async () => {
    for (const tx of Object.values(library.mistakes)) await refuses(tx, { name: "MakegoodError", code: "not_a_transaction" });
  });

  it("a transaction that has ended is refused, by us or by the library", async () => {
    const ended = await library.transaction(async ({ tx }) => tx);
    await refuses(ended, {});
  });
}
