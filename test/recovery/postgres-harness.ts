/**
 * PostgreSQL as the recovery suites want it: each case on empty tables, several instances on the same data. A migrated schema and the
 * store on it are emptied and used again: making them takes longer than most cases. Topics stay, each case puts the same ones.
 */
import type pg from "pg";
import type { WithHome } from "../../src/store/home.ts";
import type { Store } from "../../src/store/store.ts";
import type { RecoveryHarness } from "../../src/testing/index.ts";
import { dropSchema, emptyTables, freshSchema, keptClient, openStore } from "../support/postgres.ts";

/** Whatever migrations made, but for the proof that they ran, what a store remembers, and partitions, which go with their tables. */
const TABLES = `select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = $1 and c.relkind in ('r', 'p') and not c.relispartition and c.relname not like 'migration%' and c.relname not in ('topic', 'lane', 'installation')`;

async function empty(client: pg.Client, schema: string): Promise<void> {
  const { rows } = await client.query<{ relname: string }>(TABLES, [schema]);
  const names = rows.map(({ relname }) => relname);
  await emptyTables(client, schema, names);
}

export interface PostgresRecovery extends RecoveryHarness {
  drop(): Promise<void>;
}

type Opened = Store & WithRecovery & { readonly schema: string };

export function postgresRecovery(): PostgresRecovery {
  const all: Opened[] = [];
  const idle: Opened[] = [];
  const between = keptClient();

  async function first(): Promise<Opened> {
    const again = idle.pop();
    if (again) {
      await empty(await between.get(), again.schema);
      return again;
    }
    // A thousand calls at once wait for ten connections, on a busy machine for longer than a caller would want to.
    const store = await openStore({ schema: freshSchema(), connectTimeoutMs: 60_000 });
    all.push(store);
    return store;
  }

  return {
    name: "postgres",
    async open() {
      const store = await first();
      const others: Store[] = [];
      return {
        store,
        async another() {
          const other = await openStore({ schema: store.schema, connectTimeoutMs: 60_000 });
          others.push(other);
          return other;
        },
        async close() {
          for (const other of others) await other.close();
          idle.push(store);
        },
      };
    },
    async drop() {
      await between.close();
      for (const store of all) {
        await store.close();
        await dropSchema(store.schema);
      }
    },
  };
}
