/** C8: the code path that everybody has, enqueue in a transaction, as a unit test sees it. */
import { describe, expect, it } from "vitest";
import { createMemoryStore, topic } from "../../../src/index.ts";
import { createTestMakegood, createTestStore, enqueued, type TestTransaction } from "../../../src/testing/index.ts";

const orders = topic<{ order: number }>("shop/orders", { sink: () => undefined });
const setUp = () => createTestMakegood({ topics: [orders] });

describe("C8: a transaction of the caller's in a unit test", () => {
  it("is seen by nobody before the commit, and not at all after a rollback", async () => {
    await using test = await setUp();
    const { mg, store } = test;
    const [kept, gone] = [store.begin(), store.begin()];
    await kept.query("insert into orders values ($1)", [7]);
    await mg.enqueue(orders, { order: 7 }, { tx: kept, key: "order-7" });
    await mg.enqueueMany(orders, [{ payload: { order: 8 } }, { payload: { order: 9 } }], { tx: gone });
    expect(await enqueued(mg, orders)).toEqual([]);
    expect(await test.drain()).toEqual([]);
    await kept.commit();
    await gone.rollback();
    expect(await enqueued(mg, orders)).toMatchObject([{ payload: { order: 7 }, key: "order-7", status: "pending" }]);
    expect(kept.queries).toEqual([{ text: "insert into orders values ($1)", values: [7] }]);
    expect(await test.drain()).toMatchObject([{ topic: "shop/orders", attempt: 1, status: "delivered" }]);
  });

  it("answers the queries of the code under test, and ends by their texts as well", async () => {
    await using test = await setUp();
    const tx = test.store.begin((text, values) => (text.startsWith("select") ? [{ stock: values[0] }] : []));
    expect(await tx.query("select stock from items where id = $1", [5])).toEqual({ rows: [{ stock: 5 }] });
    await tx.query("savepoint a");
    await tx.query("rollback to a");
    await test.mg.enqueue(orders, { order: 1 }, { tx });
    await tx.query(" COMMIT");
    expect(await enqueued(test.mg, orders)).toHaveLength(1);
    await expect(tx.rollback()).rejects.toMatchObject({ code: "not_a_transaction" });
  });

  it("may be wrapped as an adapter wraps it", async () => {
    await using test = await setUp();
    const tx = test.store.begin();
    const wrapped = { query: async (text: string, values?: unknown[]) => ({ rows: (await tx.query(text, values)).rows }) };
    await test.mg.enqueue(orders, { order: 1 }, { tx: wrapped });
    await tx.commit();
    expect(await enqueued(test.mg, orders)).toHaveLength(1);
  });

  it("is refused when it has ended, is none, or belongs to another store", async () => {
    await using test = await setUp();
    const ended = test.store.begin();
    await ended.commit();
    const enqueue = (tx: unknown) => test.mg.enqueue(orders, { order: 1 }, { tx: tx as TestTransaction });
    await expect(enqueue(ended)).rejects.toMatchObject({ code: "not_a_transaction", message: /has ended/ });
    await expect(enqueue({ query: async () => ({ rows: [] }) })).rejects.toThrow(/begin one with store\.begin\(\)/);
    await expect(enqueue({ query: () => undefined })).rejects.toMatchObject({ code: "not_a_transaction" });
    await expect(enqueue(createTestStore().begin())).rejects.toMatchObject({ code: "wrong_database" });
    expect(await enqueued(test.mg, orders)).toEqual([]);
  });

  it("two that wait for each other's key end with retry_transaction, as a deadlock does", async () => {
    await using test = await setUp();
    const [one, two] = [test.store.begin(), test.store.begin()];
    const enqueue = (tx: TestTransaction, key: string) => test.mg.enqueue(orders, { order: 1 }, { tx, key });
    await enqueue(one, "a");
    await enqueue(two, "b");
    const waiting = enqueue(one, "b");
    await expect(enqueue(two, "a")).rejects.toMatchObject({ code: "retry_transaction" });
    await two.rollback();
    expect(await waiting).toMatchObject({ inserted: true });
    await one.commit();
    expect((await enqueued(test.mg, orders)).map(({ key }) => key)).toEqual(["a", "b"]);
  });

  it("the memory store refuses one and names what to test with", async () => {
    const store = createMemoryStore();
    const tx = { query: async () => ({ rows: [] }) };
    await expect(store.enqueue([], { tx })).rejects.toThrow(/createTestStore/);
  });
});
