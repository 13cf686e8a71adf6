/**
 * Drizzle, over node-postgres and over postgres.js.
 */
import { drizzle as overNodePostgres } from "drizzle-orm/node-postgres";
import { pgSchema, text } from "drizzle-orm/pg-core";
import { drizzle as overPostgresJs } from "drizzle-orm/postgres-js";
import pg from "pg";
import postgres from "postgres";
import { type DrizzleTransaction, fromDrizzle } from "../../../src/adapters/index.ts";
import type { LibraryKind } from "../support/library.ts";

const table = (schema: string) => pgSchema(schema).table("business", { note: text().primaryKey() });

export const drizzleNodePostgres: LibraryKind = {
  name: "Drizzle on node-postgres",
  async open(url, schema) {
    const pool = new pg.Pool({ connectionString: url, max: 2 });
    const db = overNodePostgres(pool);
    const business = table(schema);
    return {
      transaction: (work) =>
        db.transaction((tx) => work({ tx: fromDrizzle(tx), write: (note) => tx.insert(business).values({ note }) })),
      mistakes: { "the root db": fromDrizzle(db as unknown as DrizzleTransaction) },
      close: () => pool.end(),
    };
  },
};

export const drizzlePostgresJs: LibraryKind = {
  name: "Drizzle on postgres.js",
  async open(url, schema) {
    const sql = postgres(url, { max: 2, onnotice: () => undefined });
    const db = overPostgresJs(sql);
    const business = table(schema);
    return {
      transaction: (work) =>
        db.transaction((tx) => work({ tx: fromDrizzle(tx), write: (note) => tx.insert(business).values({ note }) })),
      mistakes: { "the root db": fromDrizzle(db as unknown as DrizzleTransaction) },
      close: () => sql.end(),
    };
  },
};
