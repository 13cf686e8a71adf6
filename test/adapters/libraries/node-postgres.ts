/**
 * node-postgres needs no adapter: a client inside BEGIN … COMMIT is the transaction.
 */
import pg from "pg";
import type { LibraryKind } from "../support/library.ts";

export const nodePostgres: LibraryKind = {
  name: "node-postgres",
  async open(url, schema) {
    const pool = new pg.Pool({ connectionString: url, max: 2 });
    const idle = new pg.Client({ connectionString: url });
    await idle.connect();
    return {
      async transaction(work) {
        const client = await pool.connect();
        try {
          await client.query("begin");
          const write = (note: string) => client.query(`insert into "${schema}".business values ($1)`, [note]);
          const result = await work({ tx: client, write });
          await client.query("commit");
          return result;
        } catch (error) {
          await client.query("rollback");
          throw error;
        } finally {
          client.release();
        }
      },
      mistakes: { "the pool": pool, "a client that has not begun": idle },
      close: () => Promise.all([pool.end(), idle.end()]),
    };
  },
};
