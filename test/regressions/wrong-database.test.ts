/**
 * N5: a caller's transaction of another database than the store's is refused with `wrong_database` and leaves nothing there, in each form
 * of the statement; in the right database a call is one statement, as before.
 */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createIds } from "../../src/platform/ids.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import type { Store, Transaction } from "../../src/store/store.ts";
import { KEYED, newMessage, OTHER, PLAIN, TOPICS } from "../../src/testing/store-conformance/fixtures.ts";
import { databaseUrl, dropSchema, freshSchema, withClient } from "../support/postgres.ts";

const id = createIds();
const schema = freshSchema();
const database = `other_${schema}`;
const otherUrl = databaseUrlOf(database);
let ours: Store;
let theirs: Store;

function databaseUrlOf(name: string): string {
  const url = new URL(databaseUrl());
  url.pathname = `/${name}`;
  return url.href;
}

async function within<T>(url: string, work: (client: pg.Client) => Promise<T>, begin = "begin"): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(begin);
    return await work(client);
  } finally {
    await client.query("commit");
    await client.end();
  }
}

beforeAll(async () => {
  await withClient((client) => client.query(`create database "${database}"`));
  ours = createPostgresStore({ url: databaseUrl(), schema });
  theirs = createPostgresStore({ url: otherUrl, schema });
  await ours.open();
  await theirs.open();
  for (const topic of TOPICS) await ours.topics.put(topic, "code");
  // The same lane numbers stand for other topics there.
  for (const topic of [...TOPICS].reverse()) await theirs.topics.put(topic, "code");
  await ours.enqueue([newMessage(id())]);
  for (const topic of [OTHER, PLAIN, KEYED]) await theirs.enqueue([newMessage(id(), { topic })]);
});

afterAll(async () => {
  await ours?.close();
  await theirs?.close();
  await dropSchema(schema);
  await withClient((client) => client.query(`drop database if exists "${database}" with (force)`));
});

const FORMS = {
  "one message": () => [newMessage(id())],
  "one message with a key": () => [newMessage(id(), { key: `k-${id()}` })],
  "one message with a key that is taken there": () => [newMessage(id(), { key: "taken" })],
  "one ordered message": () => [newMessage(id(), { topic: KEYED, orderingKey: "o" })],
  "a batch": () => [newMessage(id()), newMessage(id(), { delayMs: 10 })],
  "a batch with keys": () => [newMessage(id(), { key: `k-${id()}` }), newMessage(id())],
};

describe("N5: a transaction of another database", () => {
  for (const [name, messages] of Object.entries(FORMS)) {
    it(`${name} is refused, and nothing is there after its commit`, async () => {
      const taken = newMessage(id(), { key: "taken" });
      await theirs.enqueue([taken]);
      const all = messages();
      await within(otherUrl, async (client) => {
        const refused = expect(ours.enqueue(all, { tx: client })).rejects;
        await refused.toMatchObject({ code: "wrong_database", message: expect.stringMatching(/database of the store's url/) });
        // The transaction goes on: what else the caller writes is the caller's decision.
        await client.query("select 1");
      });
      for (const message of all) expect(await theirs.get(message.id)).toBeNull();
    });
  }

  it("an adapter's transaction, asked with text alone, is refused likewise", async () => {
    await within(otherUrl, async (client) => {
      const tx: Transaction = { query: async (text, values) => ({ rows: (await client.query(text, values)).rows }) };
      await expect(ours.enqueue([newMessage(id())], { tx })).rejects.toMatchObject({ code: "wrong_database" });
    });
  });

  it("a database without our schema says the same", async () => {
    const empty = databaseUrlOf("postgres");
    await within(empty, async (client) => {
      await client.query("create temp table own (a int)");
      await expect(ours.enqueue([newMessage(id())], { tx: client })).rejects.toMatchObject({ code: "wrong_database" });
      await client.query("rollback");
    });
  });

  it("the right one takes it with one statement, also under REPEATABLE READ with a tenant that is new since its snapshot", async () => {
    const sent: string[] = [];
    await within(databaseUrl(), async (client) => {
      const tx: Transaction & { getTransactionStatus(): string } = {
        getTransactionStatus: () => "T",
        query: async (text, values) => {
          sent.push(text);
          return { rows: (await client.query(text, values)).rows };
        },
      };
      await ours.enqueue([newMessage(id(), { key: "one" })], { tx });
    });
    expect(sent).toHaveLength(1);
    const message = newMessage(id(), { tenantId: "new" });
    const repeatable = "begin isolation level repeatable read";
    await within(
      databaseUrl(),
      async (client) => {
        await client.query("select 1 from pg_class limit 1");
        expect(await ours.enqueue([message], { tx: client })).toEqual([{ kind: "accepted", id: message.id }]);
        expect(await ours.enqueue([newMessage(id())], { tx: client })).toMatchObject([{ kind: "accepted" }]);
      },
      repeatable,
    );
    expect((await ours.get(message.id))?.tenantId).toBe("new");
  });

  it("our own connections follow a database that became another one: its topics and lanes are looked up again", async () => {
    await withClient((client) => client.query(`update "${schema}".installation set id = gen_random_uuid()`));
    const message = newMessage(id(), { key: "after" });
    expect(await ours.enqueue([message])).toEqual([{ kind: "accepted", id: message.id }]);
    const more = [newMessage(id()), newMessage(id())];
    expect(await ours.enqueue(more)).toMatchObject([{ kind: "accepted" }, { kind: "accepted" }]);
  });

  it("so does a process that enqueues in its callers' transactions alone, and goes on refusing those of others", async () => {
    for (const messages of Object.values(FORMS)) {
      await withClient((client) => client.query(`update "${schema}".installation set id = gen_random_uuid()`));
      const all = messages();
      await within(otherUrl, async (client) => {
        await expect(ours.enqueue(all, { tx: client })).rejects.toMatchObject({ code: "wrong_database" });
      });
      await withClient((client) => client.query(`update "${schema}".installation set id = gen_random_uuid()`));
      await within(databaseUrl(), async (client) => {
        expect((await ours.enqueue(all, { tx: client })).every(({ kind }) => kind === "accepted")).toBe(true);
      });
      for (const message of all) expect(await ours.get(message.id)).not.toBeNull();
    }
  });
});
