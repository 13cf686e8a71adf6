/**
 * Where a library's types tell a transaction from the client it came from, the compiler refuses the client already. Checked by
 * tsc, never run.
 */
import type { NodePgDatabase } from "drizzle-orm/node-postgres";
import type { Knex } from "knex";
import type { Kysely } from "kysely";
import type { Sql } from "postgres";
import { fromDrizzle, fromKnex, fromKysely, fromPostgresJs, fromPrisma } from "../../src/adapters/index.ts";
import type { PrismaClient } from "./node_modules/.makegood/prisma/index.js";

export function refusedByTheCompiler(
  sql: Sql,
  db: Kysely<unknown>,
  drizzle: NodePgDatabase,
  prisma: PrismaClient,
  knex: Knex,
): void {
  // @ts-expect-error the root `sql` is a pool
  fromPostgresJs(sql);
  // @ts-expect-error the root db
  fromKysely(db);
  // @ts-expect-error the root db
  fromDrizzle(drizzle);
  // @ts-expect-error the client itself
  fromPrisma(prisma);
  // @ts-expect-error the root knex
  fromKnex(knex);
}
