/**
 * The PostgreSQL store as the conformance suite wants it: each case on empty tables, several instances on the same data, the
 * caller's transactions through node-postgres. A migrated schema is emptied and used again: making one takes longer than most cases.
 */
import pg from "pg";
import { afterAll } from "vitest";
import type { PostgresStoreOptions } from "../../src/store/postgres/index.ts";
import type { Store } from "../../src/store/store.ts";
import type { StoreHarness } from "../../src/testing/store-conformance/harness.ts";
import { beginTransaction, databaseUrl, emptyTables, freshSchema, keptClient, openStore } from "../support/postgres.ts";

const TABLES =
  "topic, lane, audit_event, audit_record, message, message_kept, dedupe, ready, ready_ordered, order_lock, held, lease, attempt, dead_letter, provenance, waiter, leader, worker, starts, slot".split(
    ", ",
  );

export function postgresHarness(options: Partial<PostgresStoreOptions> = {}): StoreHarness {
  const idle: string[] = [];
  const between = keptClient();
  afterAll(() => between.close());
  const schemas = new WeakMap<Store, string>();

  async function open(schema: string, givesBack: boolean): Promise<Store> {
    const store = await openStore({ ...options, schema });
    schemas.set(store, schema);
    if (!givesBack) return store;
    const { close } = store;
    let closed = false;
    store.close = async () => {
      await close();
      if (!closed) idle.push(schema);
      closed = true;
    };
    return store;
  }

  return {
    name: "postgres",
    async open() {
      const used = idle.shift();
      if (!used) return open(freshSchema(), true);
      await emptyTables(await between.get(), used, TABLES);
      return open(used, true);
    },
    another: (store) => open(schemas.get(store) as string, false),
    transaction: beginTransaction,
    pool: () => new pg.Pool({ connectionString: databaseUrl() }),
    async reopen(store) {
      const schema = schemas.get(store) as string;
      await store.close();
      idle.splice(idle.indexOf(schema), 1);
      return open(schema, true);
    },
  };
}
