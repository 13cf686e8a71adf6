/**
 * Fault 18: behind PgBouncer in transaction mode the store knows that it has no server session of its own, leaves nothing in
 * anybody's, and delivers by polling.
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMakegood, topic } from "../../src/index.ts";
import { createConnection, createPostgresStore, examinePostgres } from "../../src/store/postgres/index.ts";
import { type PgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";

describe("behind PgBouncer in transaction mode", () => {
  const schema = freshSchema();
  let pooler: PgBouncer | undefined;
  let pooled = "";

  beforeAll(async () => {
    // One server session for everybody: whatever is left in it is seen by the next client.
    pooler = await startPgBouncer(databaseUrl(), { poolSize: 1 });
    pooled = pooler.url;
  }, 300_000);

  afterAll(async () => {
    await pooler?.close();
    await dropSchema(schema);
  });

  async function ask(text: string): Promise<string[]> {
    const client = new pg.Client({ connectionString: pooled });
    await client.connect();
    try {
      return (await client.query({ text, rowMode: "array" })).rows.map((row) => row.join(" "));
    } finally {
      await client.end();
    }
  }

  const LEFT_BEHIND = {
    "named statements": "select name from pg_prepared_statements",
    "channels listened to": "select * from pg_listening_channels()",
    "session locks": "select l.classid, l.objid from pg_locks l where locktype = 'advisory' and pid = pg_backend_pid()",
    // What PgBouncer itself sets for each client, it sets for the next one too.
    settings: `select name, setting from pg_settings where source = 'session'
      and name not in ('application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings')`,
    "temporary tables": "select relname from pg_class where relpersistence = 't'",
  };

  it("doctor says that there is one", async () => {
    const { found } = await examinePostgres(pooled, schema);
    expect(found.find(({ name }) => name === "pooler")).toMatchObject({
      status: "warn",
      detail: expect.stringContaining("in between"),
    });
  });

  it("a connection knows whether it is direct", async () => {
    for (const [url, direct] of [
      [databaseUrl(), true],
      [pooled, false],
    ] as const) {
      const connection = createConnection({ url });
      await connection.open();
      expect(connection.direct).toBe(direct);
      await connection.close();
    }
  });

  it("the probe of this test would see what is left behind", async () => {
    await ask("select set_config('lock_timeout', '12345', false)");
    expect(await ask(LEFT_BEHIND.settings)).toEqual(["lock_timeout 12345"]);
    await ask("select set_config('lock_timeout', '0', false)");
    await ask("discard all");
  });

  it("declares poll, delivers by polling what another process enqueued, and leaves nothing in the session", async () => {
    const received: string[] = [];
    const kind = topic("pooler/orders", { sink: (_, { payload }) => void received.push(payload) });
    const open = (pollMs: number) =>
      createMakegood({ store: createPostgresStore({ url: pooled, schema, poolMax: 4 }), topics: [kind], pollMs });
    const worker = await open(100);
    const producer = await open(60_000);
    try {
      for (const { store } of [worker, producer]) expect(store.traits.wake).toBe("poll");
      worker.work();
      await sleep(300); // by now it has looked, found nothing, and waits
      await producer.enqueue(kind, "alone");
      await producer.enqueue(kind, "keyed", { key: "k" });
      expect(await producer.enqueue(kind, "keyed", { key: "k" })).toMatchObject({ inserted: false });
      await producer.enqueueMany(kind, [{ payload: "a", key: "a" }, { payload: "b" }]);
      const client = new pg.Client({ connectionString: pooled });
      await client.connect();
      await client.query("begin");
      await producer.enqueue(kind, "in a transaction", { tx: client });
      await producer.enqueueMany(kind, [{ payload: "c", key: "c" }, { payload: "d" }], { tx: client });
      await client.query("commit");
      await client.end();
      const expected = ["a", "alone", "b", "c", "d", "in a transaction", "keyed"].map((text) => JSON.stringify(text));
      for (const end = performance.now() + 10_000; received.length < 7 && performance.now() < end; ) await sleep(10);
      expect([...received].sort((a, b) => (a < b ? -1 : 1))).toEqual(expected);
      for (const [what, text] of Object.entries(LEFT_BEHIND)) expect(await ask(text), what).toEqual([]);
      const sessions = await ask("select application_name from pg_stat_activity where application_name = 'makegood listen'");
      expect(sessions, "a connection that listens").toEqual([]);
    } finally {
      await worker.close();
      await producer.close();
    }
    for (const [what, text] of Object.entries(LEFT_BEHIND)) expect(await ask(text), `after closing: ${what}`).toEqual([]);
  });

  it("a transaction on a client of the pooler is refused when it has not begun", async () => {
    const producer = await createMakegood({ store: createPostgresStore({ url: pooled, schema, poolMax: 2 }) });
    const client = new pg.Client({ connectionString: pooled });
    await client.connect();
    await expect(producer.enqueue("pooler/orders", 1, { tx: client })).rejects.toMatchObject({ code: "not_a_transaction" });
    await client.end();
    await producer.close();
  });
});
