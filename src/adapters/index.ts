/**
 * The door `makegood/adapters`: an ORM's own transaction as the `tx` that enqueue takes. A node-postgres client inside
 * BEGIN … COMMIT needs none of these; it is passed as it is.
 */
export { type DrizzleTransaction, fromDrizzle } from "./drizzle.ts";
export { fromKnex, type KnexTransaction } from "./knex.ts";
export { fromKysely, type KyselyTransaction } from "./kysely.ts";
export { fromMikroOrm, type MikroOrmManager } from "./mikro-orm.ts";
export { fromPostgresJs, type PostgresJsTransaction } from "./postgres-js.ts";
export { fromPrisma, type PrismaTransaction } from "./prisma.ts";
export { fromTypeOrm, type TypeOrmManager, type TypeOrmRunner } from "./type-orm.ts";
