/**
 * What stands before the first statement. Migrations on a database that has seen work: one that takes long is not given up, and messages that an older release left pending
 * are claimed by the newer one, within the same bounds.
 */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../src/message/limits.ts";
import { createConnection, migrateUp } from "../../src/store/postgres/index.ts";
import { KERNEL_SET } from "../../src/store/postgres/migrate.ts";
import { daysAround, ensurePartitions } from "../../src/store/postgres/partitions.ts";
import { claimAll } from "../support/claim-all.ts";
import { databaseUrl, dropSchema, freshSchema, openStore, withClient } from "../support/postgres.ts";

describe("a connection", () => {
  it("keeps both the options of its URL and the plans it needs", async () => {
    const url = new URL(databaseUrl());
    url.searchParams.set("options", "-c work_mem=7MB -c enable_seqscan=on");
    const connection = createConnection({ url: url.href });
    await connection.open();
    const settings = ["work_mem", "plan_cache_mode", "enable_seqscan"].map((name) => `current_setting('${name}')`).join(", ");
    expect(await connection.rows("read settings", `select ${settings}`, [])).toEqual([["7MB", "force_generic_plan", "off"]]);
    await connection.close();
  });
});

describe("migrations", () => {
  it("one may take longer than any other statement", async () => {
    const schema = freshSchema();
    const connection = createConnection({ url: databaseUrl(), queryTimeoutMs: 300 });
    await connection.open();
    const slow = { version: 1, name: "slow", sql: (s: string) => `select pg_sleep(1.2); create table ${s}.slow (id int)` };
    expect(await migrateUp(connection, schema, { name: "slow", ledger: "slow_ledger", migrations: [slow] })).toEqual([
      "0001-slow",
    ]);
    await connection.close();
    await dropSchema(schema);
  });

  it("REC-19b: are applied up to a named revision, then the rest", async () => {
    const schema = freshSchema();
    const connection = createConnection({ url: databaseUrl() });
    await connection.open();
    const up = (to?: string) => migrateUp(connection, schema, KERNEL_SET, to);
    expect(await up("audit")).toEqual(["0001-kernel", "0002-enqueue-function", "0003-ready-bytes", "0004-audit"]);
    expect(await up("2")).toEqual([]);
    expect(await up("0005-sized-enqueue")).toEqual(["0005-sized-enqueue"]);
    await expect(up("nowhere")).rejects.toThrow(/no migration "nowhere": choose from 0001-kernel/);
    expect(await up()).toHaveLength(KERNEL_SET.migrations.length - 5);
    await connection.close();
    await dropSchema(schema);
  });

  it("what an older release left pending is claimed after the upgrade, in batches that fit", async () => {
    const schema = freshSchema();
    const connection = createConnection({ url: databaseUrl() });
    await connection.open();
    await migrateUp(connection, schema, { ...KERNEL_SET, migrations: KERNEL_SET.migrations.slice(0, 4) });
    await ensurePartitions(connection, `"${schema}"`, daysAround(Date.now()));
    await connection.close();
    const definition = JSON.stringify({ ordering: "none", schemaVersion: 1 });
    await withClient(async (client) => {
      await client.query(`insert into "${schema}".topic (name, definition, source) values ('old/one', $1, 'api')`, [definition]);
      for (let i = 0; i < 40; i++) {
        await client.query(`select * from "${schema}".enqueue('old/one', $1)`, [JSON.stringify({ i, text: randomUUID() })]);
      }
    });
    const store = await openStore({ schema });
    const { batches, messages } = await claimAll(store, { limit: 1_000, bytesMax: LIMITS.claimBytesMax });
    expect(messages.map((m) => JSON.parse(m.payload).i).sort((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, i) => i));
    expect(Math.max(...batches)).toBe(LIMITS.claimBytesMax / LIMITS.payloadBytesMax);
    await store.close();
    await dropSchema(schema);
  });
});
