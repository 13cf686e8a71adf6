/**
 * node-postgres needs no adapter: a client inside BEGIN … COMMIT is the transaction. The same by hand: an object of one's own
 * with nothing but `query`, about which nobody knows anything but the server.
 */
import pg from "pg";
import type { Transaction } from "../../../src/store/store.ts";
import type { Library, LibraryKind } from "../support/library.ts";

async function open(url: string, schema: string, tx: (client: pg.PoolClient) => Transaction): Promise<Library> {
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  const idle = new pg.Client({ connectionString: url });
  await idle.connect();
  return {
    async transaction(work) {
      const client = await pool.connect();
      try {
        await client.query("begin");
        const write = (note: string) => client.query(`insert into "${schema}".business values ($1)`, [note]);
        const result = await work({ tx: tx(client), write });
        await client.query("commit");
        return result;
      } catch (error) {
        await client.query("rollback");
        throw error;
      } finally {
        client.release();
      }
    },
    mistakes: {
      "the pool": pool,
      "a client that has not begun": idle,
      "one's own object around a client that has not begun": { query: (text, values) => idle.query(text, values) },
      "one's own object around the pool": { query: (text, values) => pool.query(text, values) },
    },
    close: () => Promise.all([pool.end(), idle.end()]),
  };
}

export const nodePostgres: LibraryKind = {
  name: "node-postgres",
  open: (url, schema) => open(url, schema, (client) => client),
};

export const byHand: LibraryKind = {
  name: "an object of one's own",
  open: (url, schema) => open(url, schema, (client) => ({ query: (text, values) => client.query(text, values) })),
};
