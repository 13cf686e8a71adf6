/**
 * PostgreSQL as the recovery suites want it: each case on empty tables, several instances on the same data. A migrated schema is
 * emptied and used again: making one takes longer than most cases.
 */
import type { WithRecovery } from "../../src/store/recovery.ts";
import type { Store } from "../../src/store/store.ts";
import type { RecoveryHarness } from "../../src/testing/index.ts";
import { dropSchema, freshSchema, openStore, withClient } from "../support/postgres.ts";

/** Whatever migrations made, but for the proof that they ran and partitions, which go with their tables. */
const TABLES = `select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = $1 and c.relkind in ('r', 'p') and not c.relispartition and c.relname not like 'migration%'`;

/** Only what holds rows: a table takes longer to truncate than to look at. */
async function empty(schema: string): Promise<void> {
  await withClient(async (client) => {
    const { rows } = await client.query(TABLES, [schema]);
    const names: string[] = rows.map(({ relname }) => `"${schema}".${relname}`);
    const looks = names.map((name) => `select '${name}' as name where exists (select from ${name})`);
    const filled = (await client.query(looks.join(" union all "))).rows.map(({ name }) => name);
    if (filled.length > 0) await client.query(`truncate ${filled.join(", ")} restart identity cascade`);
  });
}

export interface PostgresRecovery extends RecoveryHarness {
  drop(): Promise<void>;
}

export function postgresRecovery(): PostgresRecovery {
  const used: string[] = [];
  const idle: string[] = [];
  return {
    name: "postgres",
    async open() {
      const again = idle.pop();
      const schema = again ?? freshSchema();
      if (again) await empty(schema);
      else used.push(schema);
      const opened: (Store & WithRecovery)[] = [];
      const open = async () => {
        const store = await openStore({ schema });
        opened.push(store);
        return store;
      };
      return {
        store: await open(),
        another: open,
        async close() {
          for (const store of opened) await store.close();
          idle.push(schema);
        },
      };
    },
    async drop() {
      for (const schema of used) await dropSchema(schema);
    },
  };
}
