/**
 * Forward-only numbered migrations: each in one transaction with its own row of proof (checksum), under an advisory lock of
 * that transaction, so that two migrators at once are one after the other and PgBouncer may stand between. A waiting DDL must
 * not stall the callers behind it: lock_timeout gives up and tries again.
 */
import { createHash } from "node:crypto";
import { MakegoodError } from "../../message/errors.ts";
import type { Connection, Queryable } from "./connection.ts";
import { MIGRATIONS } from "./migrations/list.ts";
import type { Migration, MigrationSet } from "./migrations/migration.ts";
import { quoteSchema } from "./schema-name.ts";
import { USAGE_SET } from "./usage/migrations/list.ts";

export interface MigrationState {
  readonly version: number;
  readonly name: string;
  readonly applied: boolean;
  readonly appliedAt: string | null;
}

export const KERNEL_SET: MigrationSet = { name: "kernel", ledger: "migration", migrations: MIGRATIONS };

/** Sets that only some need, by name; each stands on the kernel's tables. */
export const OPTIONAL_SETS: ReadonlyMap<string, MigrationSet> = new Map([USAGE_SET].map((set) => [set.name, set]));

/** On a large table a migration may take long; given up half way it would only begin again. */
const MIGRATION_MS_MAX = 24 * 3_600_000;

const ledger = (s: string, table: string) =>
  `create table if not exists ${s}.${table} (version int primary key, name text not null, checksum text not null, at timestamptz not null default statement_timestamp())`;

/** Over the SQL as written for a placeholder schema: the same in every database. */
const checksum = (migration: Migration): string =>
  createHash("sha256").update(migration.sql('"makegood"')).digest("hex").slice(0, 32);

const numbered = ({ version, name }: Migration): string => `${String(version).padStart(4, "0")}-${name}`;

/** The migrations up to the one named by its number or name, itself included. */
function migrationsUpTo(set: MigrationSet, revision: string): MigrationSet {
  const at = set.migrations.findIndex((m) => m.name === revision || numbered(m) === revision || m.version === Number(revision));
  if (at >= 0) return { ...set, migrations: set.migrations.slice(0, at + 1) };
  const known = set.migrations.map(numbered).join(", ");
  throw new MakegoodError("invalid_config", `there is no migration ${JSON.stringify(revision)}: choose from ${known}`);
}

/** `upTo`: stops after this one; the database may be further already. */
export async function migrateUp(
  connection: Connection,
  schema: string,
  set: MigrationSet = KERNEL_SET,
  upTo: string | undefined = undefined,
): Promise<string[]> {
  const wanted = upTo === undefined ? set : migrationsUpTo(set, upTo);
  const s = quoteSchema(schema);
  const proof = `${s}.${set.ledger}`;
  const done: string[] = [];
  const before = await applied(connection, s, set);
  refuseDrift(before, set);
  if (wanted.migrations.every((m) => before.has(m.version))) return done;
  await connection.transaction("migrate", (client) => begin(client, s, set));
  for (const migration of wanted.migrations) {
    const name = numbered(migration);
    const ran = await connection.transaction(`migrate ${name}`, async (client) => {
      await guard(client, schema);
      const { rows } = await client.query(`select 1 from ${proof} where version = $1`, [migration.version]);
      if (rows.length > 0) return false;
      await client.query({ text: migration.sql(s), query_timeout: MIGRATION_MS_MAX });
      await client.query(`insert into ${proof} (version, name, checksum) values ($1, $2, $3)`, [
        migration.version,
        migration.name,
        checksum(migration),
      ]);
      return true;
    });
    if (ran) done.push(name);
  }
  return done;
}

/** All of a set at once, in the transaction of the caller, who compares and rolls back. */
export async function makeIn(client: Queryable, schema: string, set: MigrationSet): Promise<void> {
  const s = quoteSchema(schema);
  await client.query(ledger(s, set.ledger));
  for (const migration of set.migrations) await client.query({ text: migration.sql(s), query_timeout: MIGRATION_MS_MAX });
}

async function guard(client: Queryable, schema: string): Promise<void> {
  await client.query("set local lock_timeout = '5s'");
  await client.query("set local statement_timeout = 0");
  await client.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [`makegood migrate ${schema}`]);
}

async function begin(client: Queryable, s: string, set: MigrationSet): Promise<void> {
  await guard(client, s.replaceAll('"', ""));
  await client.query(`create schema if not exists ${s}`);
  await client.query(ledger(s, set.ledger));
}

type Applied = Map<number, { checksum: string; at: string }>;

async function applied(connection: Connection, s: string, set: MigrationSet): Promise<Applied> {
  const proof = `${s}.${set.ledger}`;
  const present = await connection.rows("migrate", "select to_regclass($1)::text", [proof], { reads: true });
  if (!present[0]?.[0]) return new Map();
  const rows = await connection.rows("migrate", `select version, checksum, at from ${proof} order by version`, [], {
    reads: true,
  });
  return new Map(rows.map(([version, sum, at]) => [Number(version), { checksum: sum as string, at: at as string }]));
}

/** A database written by a newer release, or by a migration that was edited, is not ours to touch. */
function refuseDrift(found: Applied, set: MigrationSet): void {
  const which = set === KERNEL_SET ? "migration" : `${set.name} migration`;
  for (const [version, { checksum: sum }] of found) {
    const migration = set.migrations.find((m) => m.version === version);
    if (!migration) {
      throw new MakegoodError(
        "schema_outdated",
        `the database has ${which} ${version}, which this release does not know: run a release that is at least as new as the database`,
      );
    }
    if (checksum(migration) !== sum) {
      throw new MakegoodError(
        "schema_outdated",
        `${which} ${version} in the database differs from this release's: it was edited after it ran`,
      );
    }
  }
}

export async function migrationStatus(
  connection: Connection,
  schema: string,
  set: MigrationSet = KERNEL_SET,
): Promise<MigrationState[]> {
  const found = await applied(connection, quoteSchema(schema), set);
  refuseDrift(found, set);
  return set.migrations.map(({ version, name }) => ({
    version,
    name,
    applied: found.has(version),
    appliedAt: found.get(version)?.at ?? null,
  }));
}

/** Everything as one script for a DBA to read and run. */
export function printMigrations(schema: string, set: MigrationSet = KERNEL_SET): string {
  const s = quoteSchema(schema);
  const parts = set.migrations.map(
    (m) =>
      `-- ${numbered(m)}\nbegin;\n${m.sql(s).trim()}\n` +
      `insert into ${s}.${set.ledger} (version, name, checksum) values (${m.version}, '${m.name}', '${checksum(m)}');\ncommit;\n`,
  );
  return `create schema if not exists ${s};\n${ledger(s, set.ledger)};\n\n${parts.join("\n")}`;
}
