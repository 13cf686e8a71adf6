/**
 * Every library, in each way in which it makes transactions.
 */
import type { LibraryKind } from "../support/library.ts";
import { drizzleNodePostgres, drizzlePostgresJs } from "./drizzle.ts";
import { knex, knexNested } from "./knex.ts";
import { kysely, kyselyControlled } from "./kysely.ts";
import { mikroOrm, mikroOrmByHand } from "./mikro-orm.ts";
import { byHand, nodePostgres } from "./node-postgres.ts";
import { postgresJs, postgresJsReserved } from "./postgres-js.ts";
import { prisma } from "./prisma.ts";
import { typeOrm, typeOrmRunner } from "./type-orm.ts";

export const KINDS: readonly LibraryKind[] = [
  nodePostgres,
  byHand,
  postgresJs,
  postgresJsReserved,
  kysely,
  kyselyControlled,
  drizzleNodePostgres,
  drizzlePostgresJs,
  prisma,
  knex,
  knexNested,
  typeOrm,
  typeOrmRunner,
  mikroOrm,
  mikroOrmByHand,
];
