/**
 * Forward-only numbered migrations: each in one transaction with its own row of proof (checksum), under an advisory lock of
 * that transaction, so that two migrators at once are one after the other and PgBouncer may stand between. A waiting DDL must
 * not stall the callers behind it: lock_timeout gives up and tries again.
 */
import { createHash } from "node:crypto";
import { MakegoodError } from "../../message/errors.js";
import { MIGRATIONS } from "./migrations/list.js";
import { quoteSchema } from "./schema-name.js";
const ledger = (s) => `create table if not exists ${s}.migration (version int primary key, name text not null, checksum text not null, at timestamptz not null default statement_timestamp())`;
/** Over the SQL as written for a placeholder schema: the same in every database. */
const checksum = (migration) => createHash("sha256").update(migration.sql('"makegood"')).digest("hex").slice(0, 32);
export async function migrateUp(connection, schema) {
    const s = quoteSchema(schema);
    const done = [];
    const before = await applied(connection, s);
    refuseDrift(before);
    if (MIGRATIONS.every((m) => before.has(m.version)))
        return done;
    await connection.transaction("migrate", (client) => begin(client, s));
    for (const migration of MIGRATIONS) {
        const name = `${String(migration.version).padStart(4, "0")}-${migration.name}`;
        const ran = await connection.transaction(`migrate ${name}`, async (client) => {
            await guard(client, schema);
            const { rows } = await client.query(`select 1 from ${s}.migration where version = $1`, [migration.version]);
            if (rows.length > 0)
                return false;
            await client.query(migration.sql(s));
            await client.query(`insert into ${s}.migration (version, name, checksum) values ($1, $2, $3)`, [
                migration.version,
                migration.name,
                checksum(migration),
            ]);
            return true;
        });
        if (ran)
            done.push(name);
    }
    return done;
}
async function guard(client, schema) {
    await client.query("set local lock_timeout = '5s'");
    await client.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [`makegood migrate ${schema}`]);
}
async function begin(client, s) {
    await guard(client, s.replaceAll('"', ""));
    await client.query(`create schema if not exists ${s}`);
    await client.query(ledger(s));
}
async function applied(connection, s) {
    const present = await connection.rows("migrate", "select to_regclass($1)::text", [`${s}.migration`], { reads: true });
    if (!present[0]?.[0])
        return new Map();
    const rows = await connection.rows("migrate", `select version, checksum, at from ${s}.migration order by version`, [], {
        reads: true,
    });
    return new Map(rows.map(([version, sum, at]) => [Number(version), { checksum: sum, at: at }]));
}
/** A database written by a newer release, or by a migration that was edited, is not ours to touch. */
function refuseDrift(found) {
    for (const [version, { checksum: sum }] of found) {
        const migration = MIGRATIONS.find((m) => m.version === version);
        if (!migration) {
            throw new MakegoodError("schema_outdated", `the database has migration ${version}, which this release does not know: run a release that is at least as new as the database`);
        }
        if (checksum(migration) !== sum) {
            throw new MakegoodError("schema_outdated", `migration ${version} in the database differs from this release's: it was edited after it ran`);
        }
    }
}
export async function migrationStatus(connection, schema) {
    const found = await applied(connection, quoteSchema(schema));
    refuseDrift(found);
    return MIGRATIONS.map(({ version, name }) => ({
        version,
        name,
        applied: found.has(version),
        appliedAt: found.get(version)?.at ?? null,
    }));
}
/** Everything as one script for a DBA to read and run. */
export function printMigrations(schema) {
    const s = quoteSchema(schema);
    const parts = MIGRATIONS.map((m) => `-- ${String(m.version).padStart(4, "0")}-${m.name}\nbegin;\n${m.sql(s).trim()}\n` +
        `insert into ${s}.migration (version, name, checksum) values (${m.version}, '${m.name}', '${checksum(m)}');\ncommit;\n`);
    return `create schema if not exists ${s};\n${ledger(s)};\n\n${parts.join("\n")}`;
}
//# sourceMappingURL=migrate.js.map