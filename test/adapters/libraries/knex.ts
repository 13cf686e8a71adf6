/**
 * Knex: transactions with a callback, and a nested one (a savepoint to the server).
 */
import createKnex from "knex";
import { fromKnex, type KnexTransaction } from "../../../src/adapters/index.ts";
import type { LibraryKind } from "../support/library.ts";

export const knex: LibraryKind = {
  name: "Knex",
  async open(url, schema) {
    const db = createKnex({ client: "pg", connection: url, pool: { min: 0, max: 2 } });
    return {
      transaction: (work) =>
        db.transaction((trx) =>
          work({ tx: fromKnex(trx), write: (note) => trx.withSchema(schema).into("business").insert({ note }) }),
        ),
      mistakes: { "the root knex": fromKnex(db as unknown as KnexTransaction) },
      close: () => db.destroy(),
    };
  },
};

export const knexNested: LibraryKind = {
  name: "Knex, nested",
  nested: true,
  async open(url, schema) {
    const db = createKnex({ client: "pg", connection: url, pool: { min: 0, max: 2 } });
    return {
      transaction: (work) =>
        db.transaction((outer) =>
          outer.transaction((trx) =>
            work({ tx: fromKnex(trx), write: (note) => trx.withSchema(schema).into("business").insert({ note }) }),
          ),
        ),
      mistakes: {},
      close: () => db.destroy(),
    };
  },
};
