/**
 * Stores and clients on the test run's PostgreSQL, each in a schema of its own.
 */
import pg from "pg";
import { createRecords, type Records } from "../../src/recovery/records.ts";
import type { WithAudit } from "../../src/store/audit.ts";
import type { WithConservation } from "../../src/store/conservation.ts";
import type { WithHome } from "../../src/store/home.ts";
import { createPostgresStore, type PostgresStoreOptions } from "../../src/store/postgres/index.ts";
import type { Store } from "../../src/store/store.ts";

export function databaseUrl(): string {
  const url = process.env.TEST_DATABASE_URL;
  if (!url) throw new Error("TEST_DATABASE_URL is missing: the global setup starts the server");
  return url;
}

/** The same server for a user who is refused: what a wrong password looks like. */
export function refusedUrl(): string {
  return Object.assign(new URL(databaseUrl()), { username: "stranger", password: "not-this-one" }).href;
}

let made = 0;

/** A schema name nobody else in this run has. */
export function freshSchema(): string {
  return `t_${process.pid}_${process.env.VITEST_WORKER_ID ?? "0"}_${++made}`;
}

export async function dropSchema(schema: string): Promise<void> {
  await withClient((client) => client.query(`drop schema if exists "${schema}" cascade`));
}

export async function withClient<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl() });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/**
 * One connection for what is done between the cases of a file: a new one would read the catalog again each time, which takes longer than
 * the deletes. `close` belongs into afterAll.
 */
export function keptClient(): { get(): Promise<pg.Client>; close(): Promise<void> } {
  let client: Promise<pg.Client> | undefined;
  const connect = async (): Promise<pg.Client> => {
    const made = new pg.Client({ connectionString: databaseUrl() });
    await made.connect();
    return made;
  };
  return {
    get: () => {
      client ??= connect();
      return client;
    },
    close: async () => (await client)?.end(),
  };
}

/** Of more rows than this the dead ones would slow the next case down: their tables are truncated, which takes as long as deleting thousands. */
const ROWS_MAX = 2_000;

/** Empties these tables of a schema for the next case; numbers that they give out go on. */
export async function emptyTables(client: pg.Client, schema: string, names: readonly string[]): Promise<void> {
  const tables = names.map((name) => `"${schema}".${name}`);
  const deletes = tables.map((table) => `delete from ${table}`).join("; ");
  // Without triggers and foreign keys: the order of the tables does not matter.
  const results: unknown = await client.query(`begin; set local session_replication_role = replica; ${deletes}; commit`);
  const rows = (results as pg.QueryResult[]).reduce((sum, { rowCount }) => sum + (rowCount ?? 0), 0);
  if (rows > ROWS_MAX) await client.query(`truncate ${tables.join(", ")} cascade`);
}

/** A transaction of a caller's own, which the test commits or rolls back. */
export async function beginTransaction() {
  const client = new pg.Client({ connectionString: databaseUrl() });
  await client.connect();
  await client.query("begin");
  const end = (how: string) => async () => {
    await client.query(how);
    await client.end();
  };
  return { tx: client, commit: end("commit"), rollback: end("rollback") };
}

export async function openStore(
  options: Partial<PostgresStoreOptions> = {},
): Promise<Store & WithAudit & WithConservation & WithHome & { schema: string; recovery: Records }> {
  const schema = options.schema ?? freshSchema();
  const store = createPostgresStore({ url: databaseUrl(), ...options, schema });
  await store.open();
  return Object.assign(store, { schema, recovery: createRecords(store.home) });
}
