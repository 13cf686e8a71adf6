/**
 * The optional migrations: applied by their own set, checked by their own checksums, printed for a DBA, and safe when two apply them.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import {
  createConnection,
  createPostgresUsageStore,
  migrateUp,
  migrationStatus,
  OPTIONAL_SETS,
  printMigrations,
} from "../../src/store/postgres/index.ts";
import { startableDist } from "../support/build.ts";
import { databaseUrl, dropSchema, freshSchema, openStore, withClient } from "../support/postgres.ts";

const USAGE = OPTIONAL_SETS.get("usage");

async function onSchema(work: (schema: string) => Promise<void>): Promise<void> {
  const schema = freshSchema();
  try {
    await work(schema);
  } finally {
    await dropSchema(schema);
  }
}

describe("the usage set of migrations", () => {
  it("a store without the preset has none of its tables", () =>
    onSchema(async (schema) => {
      const store = await openStore({ schema });
      await store.close();
      const { rows } = await withClient((client) =>
        client.query("select to_regclass($1)::text as t", [`"${schema}".chat_turns`]),
      );
      expect(rows).toEqual([{ t: null }]);
      const usage = createPostgresUsageStore({ url: databaseUrl(), schema, migrate: "check" });
      await expect(usage.open()).rejects.toMatchObject({ code: "schema_outdated", message: /--set usage/ });
      await usage.close();
    }));

  it("two at once on an empty schema: each opens, the tables are there once", () =>
    onSchema(async (schema) => {
      const stores = [1, 2, 3].map(() => createPostgresUsageStore({ url: databaseUrl(), schema }));
      await Promise.all(stores.map((store) => store.open()));
      expect(await stores[0]?.verify()).toEqual([]);
      for (const store of stores) await store.close();
    }));

  it("status, drift and print speak of the set, not of the kernel", () =>
    onSchema(async (schema) => {
      const connection = createConnection({ url: databaseUrl() });
      await connection.open();
      await migrateUp(connection, schema);
      expect(await migrationStatus(connection, schema, USAGE)).toMatchObject([{ version: 1, name: "usage", applied: false }]);
      // As a DBA would: what is printed is what is applied.
      await withClient((client) => client.query(printMigrations(schema, USAGE)));
      expect(await migrationStatus(connection, schema, USAGE)).toMatchObject([{ version: 1, applied: true }]);
      expect(await migrateUp(connection, schema, USAGE)).toEqual([]);
      await connection.rows("test", `update "${schema}".migration_usage set checksum = 'edited'`, []);
      await expect(migrateUp(connection, schema, USAGE)).rejects.toMatchObject({
        code: "schema_outdated",
        message: /usage migration 1/,
      });
      expect(await migrateUp(connection, schema)).toEqual([]);
      await connection.close();
    }));

  it("the command line prints, applies and shows the set by its name, and refuses a name it does not know", () =>
    onSchema(async (schema) => {
      const main = join(await startableDist(), "cli", "main.js");
      const env = { PATH: process.env.PATH, DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema };
      const migrate = (...args: string[]) => promisify(execFile)(process.execPath, [main, "migrate", ...args], { env });
      expect((await migrate("print", "--set", "usage")).stdout).toContain(`create table "${schema}".chat_turns`);
      await migrate("up");
      expect((await migrate("up", "--set", "usage")).stdout).toBe("applied 0001-usage\n");
      expect((await migrate("status", "--set", "usage")).stdout).toMatch(/0001\s+usage\s+yes/);
      await expect(migrate("up", "--set", "nothing")).rejects.toMatchObject({ stderr: /there is no set "nothing"/ });
    }));
});
