/**
 * Kysely: transactions with a callback, with a plugin that renames columns, and controlled ones.
 */
import { CamelCasePlugin, Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { fromKysely, type KyselyTransaction } from "../../../src/adapters/index.ts";
import type { LibraryKind } from "../support/library.ts";

interface Tables {
  business: { note: string };
}

function connect(url: string): Kysely<Tables> {
  const dialect = new PostgresDialect({ pool: new pg.Pool({ connectionString: url, max: 2 }) });
  return new Kysely<Tables>({ dialect, plugins: [new CamelCasePlugin()] });
}

export const kysely: LibraryKind = {
  name: "Kysely",
  async open(url, schema) {
    const db = connect(url);
    return {
      transaction: (work) =>
        db.transaction().execute((trx) =>
          work({
            tx: fromKysely(trx),
            write: (note) => trx.withSchema(schema).insertInto("business").values({ note }).execute(),
          }),
        ),
      mistakes: { "the root db": fromKysely(db as unknown as KyselyTransaction) },
      close: () => db.destroy(),
    };
  },
};

export const kyselyControlled: LibraryKind = {
  name: "Kysely, controlled",
  async open(url, schema) {
    const db = connect(url);
    return {
      async transaction(work) {
        const trx = await db.startTransaction().execute();
        try {
          const write = (note: string) => trx.withSchema(schema).insertInto("business").values({ note }).execute();
          const result = await work({ tx: fromKysely(trx), write });
          await trx.commit().execute();
          return result;
        } catch (error) {
          await trx.rollback().execute();
          throw error;
        }
      },
      mistakes: {},
      close: () => db.destroy(),
    };
  },
};
