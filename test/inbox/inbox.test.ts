/** The receiver's inbox on PostgreSQL: a key is one effect, with what it returned, in the receiver's own transaction. */
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createInbox } from "../../src/inbox/index.ts";
import type { Transaction } from "../../src/store/store.ts";
import { openScene, type Scene } from "./support.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const code = (expected: string) => ({ name: "MakegoodError", code: expected });

describe("once", () => {
  it("runs the effect of a new key, and gives a repeat what the first one returned", async () => {
    expect(await scene.deliver("order-1")).toEqual({ first: true, result: { key: "order-1" } });
    for (let i = 0; i < 3; i++) expect(await scene.deliver("order-1")).toEqual({ first: false, result: { key: "order-1" } });
    expect(await scene.deliver("order-2")).toMatchObject({ first: true });
    expect(await scene.effects()).toEqual({ "order-1": 1, "order-2": 1 });
  });

  it("is a repeat also inside the transaction that ran it", async () => {
    const results = await scene.inTransaction(async (client) => [
      await scene.inbox.once(client, "twice in one", async () => 1),
      await scene.inbox.once(client, "twice in one", async () => 2),
    ]);
    expect(results).toEqual([
      { first: true, result: 1 },
      { first: false, result: 1 },
    ]);
  });

  it.each([
    ["nothing", undefined, undefined],
    ["null", null, null],
    ["a text with a NUL, half a surrogate pair and quotes", "a\0b \ud800 '\"\\ $1 ?", "a\0b \ud800 '\"\\ $1 ?"],
    ["a date, as JSON has it", new Date(0), "1970-01-01T00:00:00.000Z"],
    ["a function, of which JSON has nothing", () => 1, undefined],
    ["an array", [1, { a: [] }], [1, { a: [] }]],
  ])("keeps %s", async (name, result, kept) => {
    const give = () => scene.inTransaction((client) => scene.inbox.once<unknown>(client, `result: ${name}`, () => result));
    expect(await give()).toEqual({ first: true, result });
    expect(await give()).toEqual({ first: false, result: kept });
  });

  it("takes an effect that returns what its driver returned", async () => {
    const insert = (client: pg.PoolClient) => () => client.query(`insert into "${scene.schema}".effect values ('driver')`);
    const give = () => scene.inTransaction((client) => scene.inbox.once(client, "driver", insert(client)));
    expect(await give()).toMatchObject({ first: true, result: { rowCount: 1 } });
    expect(await give()).toMatchObject({ first: false, result: { rowCount: 1 } });
    expect((await scene.effects()).driver).toBe(1);
  });

  it.each([
    ["that JSON cannot hold", () => 1n, "invalid_payload"],
    ["over 1 MiB", () => "x".repeat(1_048_576), "payload_too_large"],
  ])("refuses a result %s, and the key stays free", async (name, result, expected) => {
    const refused = scene.inTransaction((client) => scene.inbox.once<unknown>(client, name, result));
    await expect(refused).rejects.toMatchObject(code(expected));
    expect(await scene.deliver(name)).toMatchObject({ first: true });
  });

  it("keeps keys of different scopes apart, and cannot take one for another", async () => {
    expect(await scene.deliver("k", { scope: "shop/a tenant-1" })).toMatchObject({ first: true });
    expect(await scene.deliver("k", { scope: "shop/a tenant-2" })).toMatchObject({ first: true });
    expect(await scene.deliver("k")).toMatchObject({ first: true });
    expect(await scene.deliver("k", { scope: "shop/a tenant-1" })).toMatchObject({ first: false });
    expect(await scene.deliver("bc", { scope: "a" })).toMatchObject({ first: true });
    expect(await scene.deliver("c", { scope: "ab" })).toMatchObject({ first: true });
  });

  it("the same key with another payload is refused, and the transaction goes on", async () => {
    const payload = '{"amount":1}';
    expect(await scene.deliver("paid", { payload })).toMatchObject({ first: true });
    expect(await scene.deliver("paid", { payload: Buffer.from(payload) })).toMatchObject({ first: false });
    expect(await scene.deliver("paid"), "nothing to compare").toMatchObject({ first: false });
    await scene.inTransaction(async (client) => {
      const other = scene.inbox.once(client, "paid", () => expect.fail("it ran"), { payload: '{"amount":2}' });
      await expect(other).rejects.toMatchObject({ ...code("key_conflict"), detail: { key: "paid" } });
      await scene.inbox.once(client, "after the conflict", scene.effect(client, "after the conflict"));
    });
    expect(await scene.effects()).toMatchObject({ paid: 1, "after the conflict": 1 });
  });

  it("takes keys of up to 255 bytes, whatever they are made of", async () => {
    for (const key of ["x".repeat(255), "é".repeat(127), "💶".repeat(63), 'it\'s "$1" ? :a \\ %s {a,b} NULL -- ;']) {
      expect(await scene.deliver(key)).toMatchObject({ first: true, result: { key } });
      expect(await scene.deliver(key)).toMatchObject({ first: false, result: { key } });
    }
  });

  it.each([
    ["no key", undefined, "invalid_message"],
    ["a number", 7, "invalid_message"],
    ["an empty key", "", "invalid_message"],
    ["256 bytes", "x".repeat(256), "key_too_long"],
    ["256 bytes in fewer characters", "é".repeat(128), "key_too_long"],
    ["a NUL", "a\0b", "invalid_message"],
    ["half a surrogate pair", "\ud800", "invalid_message"],
  ])("refuses %s before anything is written", async (_name, key, expected) => {
    const before = await scene.keys();
    await expect(scene.deliver(key as string)).rejects.toMatchObject(code(expected));
    expect(await scene.keys()).toEqual(before);
  });

  it("refuses a scope that is too long, with room for every topic and tenant", async () => {
    await expect(scene.deliver("k", { scope: "x".repeat(511) })).rejects.toMatchObject(code("invalid_message"));
    const scope = `${"t".repeat(100)}/${"n".repeat(100)} ${"x".repeat(255)}`;
    expect(await scene.deliver("k", { scope })).toMatchObject({ first: true });
  });

  it("refuses what is no transaction, and runs nothing", async () => {
    const before = await scene.keys();
    const idle = await scene.pool.connect();
    const own = { query: (text: string, values?: unknown[]) => idle.query(text, values) };
    for (const tx of [scene.pool, idle, own, undefined, null, {}]) {
      const refused = scene.inbox.once(tx as Transaction, "no transaction", () => expect.fail("it ran"));
      await expect(refused).rejects.toMatchObject(code("not_a_transaction"));
    }
    idle.release();
    expect(await scene.keys()).toEqual(before);
  });

  it("says how to make the table where it is missing", async () => {
    const nowhere = createInbox({ schema: scene.schema, table: "nowhere" });
    const missing = scene.inTransaction((client) => nowhere.once(client, "k", () => 1));
    await expect(missing).rejects.toMatchObject({ ...code("schema_outdated"), message: expect.stringContaining("migrate()") });
    await expect(nowhere.prune(scene.pool, { olderThanMs: 0 })).rejects.toMatchObject(code("schema_outdated"));
  });

  it("a key that is pruned while it is looked up is new", async () => {
    await scene.deliver("pruned meanwhile");
    const again = await scene.inTransaction((client) => {
      const pruning: Transaction = {
        query: async (text, values) => {
          if (text.startsWith("select hash")) await scene.inbox.prune(scene.pool, { olderThanMs: 0 });
          return client.query(text, values);
        },
      };
      return scene.inbox.once(pruning, "pruned meanwhile", scene.effect(client, "pruned meanwhile"));
    });
    expect(again).toMatchObject({ first: true });
    expect((await scene.effects())["pruned meanwhile"]).toBe(2);
  });
});

describe("the table", () => {
  it("is made once by twenty at the same time, in a schema that does not exist yet", async () => {
    const other = createInbox({ schema: `${scene.schema}_new`, table: "seen" });
    await Promise.all(Array.from({ length: 20 }, () => other.migrate(scene.pool)));
    const { rows } = await scene.pool.query("select to_regclass($1) is not null as made", [`"${scene.schema}_new".seen`]);
    expect(rows).toEqual([{ made: true }]);
    await scene.pool.query(`drop schema "${scene.schema}_new" cascade`);
  });

  it("is left alone when it is there, also while it is in use", async () => {
    await scene.inTransaction(async (client) => {
      await scene.inbox.once(client, "while migrating", () => 1);
      await scene.inbox.migrate(scene.pool);
    });
    expect(await scene.keys()).toContain("while migrating");
  });

  it("can be made by a migration of one's own, from the text", async () => {
    const other = createInbox({ schema: scene.schema, table: "by_text" });
    await scene.pool.query(`select 1; ${other.sql()} select 2;`);
    expect(await scene.inTransaction((client) => other.once(client, "k", () => 1))).toEqual({ first: true, result: 1 });
  });

  it.each(['a"; drop table x; --', "Inbox", "pg_inbox", "", "1a", "x".repeat(52)])("does not take the name %j", (name) => {
    expect(() => createInbox({ table: name })).toThrow(expect.objectContaining(code("invalid_config")));
    expect(() => createInbox({ schema: name })).toThrow(expect.objectContaining(code("invalid_config")));
  });
});

describe("retention", () => {
  it("prunes 2,500 old keys in bounded steps, the oldest first, and nothing that is younger", async () => {
    await using own = await openScene();
    const fill = (from: number, to: number, age: string) =>
      own.pool.query(`insert into "${own.schema}".makegood_inbox (scope, key, at)
        select '', 'old-' || lpad(n::text, 4, '0'), now() - interval '${age}' - n * interval '1 ms' from generate_series(${from}, ${to}) n`);
    await fill(1, 2_500, "8 days");
    await fill(5_001, 5_010, "6 days");
    const step = (limit?: number) => own.inbox.prune(own.pool, { olderThanMs: 7 * 86_400_000, limit });
    expect(await step()).toEqual({ pruned: 1_000, more: true });
    expect((await own.keys()).slice(0, 2), "the oldest went first").toEqual(["old-0001", "old-0002"]);
    expect(await own.keys()).toHaveLength(1_510);
    expect(await step(1_001)).toEqual({ pruned: 1_001, more: true });
    expect(await step()).toEqual({ pruned: 499, more: false });
    expect(await step()).toEqual({ pruned: 0, more: false });
    expect(await own.keys()).toHaveLength(10);
  });

  it("several may prune at once: each key is counted by one of them", async () => {
    await using own = await openScene();
    await own.pool.query(`insert into "${own.schema}".makegood_inbox (scope, key, at)
      select '', 'old-' || n, now() - interval '1 day' from generate_series(1, 3000) n`);
    const steps = Array.from({ length: 8 }, () => own.inbox.prune(own.pool, { olderThanMs: 1_000, limit: 500 }));
    const pruned = (await Promise.all(steps)).reduce((sum, step) => sum + step.pruned, 0);
    expect(await own.keys()).toHaveLength(3_000 - pruned);
    expect(pruned).toBeGreaterThanOrEqual(500);
  });

  it("does not wait for a key that another transaction holds", async () => {
    await using own = await openScene();
    await Promise.all(["held", "free"].map((key) => own.deliver(key)));
    await own.inTransaction(async (client) => {
      await client.query(`select from "${own.schema}".makegood_inbox where key = 'held' for update`);
      expect(await own.inbox.prune(own.pool, { olderThanMs: 0 })).toEqual({ pruned: 1, more: false });
    });
    expect(await own.keys()).toEqual(["held"]);
  });

  it("a key that is gone is new again; one that is on its way is not touched", async () => {
    await using own = await openScene();
    await own.deliver("again");
    await own.inTransaction(async (client) => {
      await own.inbox.once(client, "on its way", own.effect(client, "on its way"));
      expect(await own.inbox.prune(own.pool, { olderThanMs: 0 })).toEqual({ pruned: 1, more: false });
    });
    expect(await own.keys()).toEqual(["on its way"]);
    expect(await own.deliver("again")).toMatchObject({ first: true });
  });

  it.each([
    { olderThanMs: -1 },
    { olderThanMs: Number.NaN },
    { olderThanMs: "7" as never },
    { olderThanMs: 1, limit: 0 },
    { olderThanMs: 1, limit: 1.5 },
    { olderThanMs: 1, limit: 10_001 },
  ])("refuses %j", async (options) => {
    await expect(scene.inbox.prune(scene.pool, options)).rejects.toMatchObject(code("invalid_config"));
  });
});
