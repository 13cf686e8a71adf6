/**
 * postgres.js: transactions of `sql.begin`, and BEGIN by hand on a reserved connection.
 */
import postgres from "postgres";
import { fromPostgresJs, type PostgresJsTransaction } from "../../../src/adapters/index.ts";
import type { LibraryKind } from "../support/library.ts";

export const postgresJs: LibraryKind = {
  name: "postgres.js",
  async open(url, schema) {
    const sql = postgres(url, { max: 3, onnotice: () => undefined });
    const reserved = await sql.reserve();
    return {
      transaction: (work) =>
        sql.begin((tx) =>
          work({ tx: fromPostgresJs(tx), write: (note) => tx`insert into ${tx(schema)}.business values (${note})` }),
        ) as never,
      mistakes: {
        "the root sql": fromPostgresJs(sql as unknown as PostgresJsTransaction),
        "a reserved connection that has not begun": fromPostgresJs(reserved),
      },
      close: async () => {
        reserved.release();
        await sql.end();
      },
    };
  },
};

export const postgresJsReserved: LibraryKind = {
  name: "postgres.js, reserved",
  async open(url, schema) {
    const sql = postgres(url, { max: 2, onnotice: () => undefined });
    return {
      async transaction(work) {
        const own = await sql.reserve();
        try {
          await own`begin`;
          const result = await work({
            tx: fromPostgresJs(own),
            write: (note) => own`insert into ${own(schema)}.business values (${note})`,
          });
          await own`commit`;
          return result;
        } catch (error) {
          await own`rollback`;
          throw error;
        } finally {
          own.release();
        }
      },
      mistakes: {},
      close: () => sql.end(),
    };
  },
};
