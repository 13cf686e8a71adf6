/**
 * Enqueue in the caller's transaction, with the real libraries.
 */
import { describe } from "vitest";
import { drizzleNodePostgres, drizzlePostgresJs } from "./libraries/drizzle.ts";
import { knex, knexNested } from "./libraries/knex.ts";
import { kysely, kyselyControlled } from "./libraries/kysely.ts";
import { mikroOrm, mikroOrmByHand } from "./libraries/mikro-orm.ts";
import { byHand, nodePostgres } from "./libraries/node-postgres.ts";
import { postgresJs, postgresJsReserved } from "./libraries/postgres-js.ts";
import { prisma } from "./libraries/prisma.ts";
import { typeOrm, typeOrmRunner } from "./libraries/type-orm.ts";
import { judge } from "./support/judge.ts";

const KINDS = [
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

describe.each(KINDS.map((kind) => [kind.name, kind] as const))("%s", (_, kind) => judge(kind));
