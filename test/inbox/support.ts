/**
 * An inbox of its own, a table of effects beside it, and connections that deliver into both.
 */
import pg from "pg";
import { createInbox, type Inbox, type Once, type OnceOptions } from "../../src/inbox/index.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";

export interface Scene extends AsyncDisposable {
  readonly schema: string;
  readonly inbox: Inbox;
  readonly pool: pg.Pool;
  /** A transaction of its own: begun, `work`, committed, or rolled back when it throws. */
  inTransaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T>;
  /** One delivery: the effect is a row. */
  deliver(key: string, options?: OnceOptions): Promise<Once<{ key: string }>>;
  effect(client: pg.PoolClient, note: string): () => Promise<{ key: string }>;
  /** How many rows each note has, in the order of the notes. */
  effects(): Promise<Record<string, number>>;
  keys(): Promise<string[]>;
}

export async function openScene({ connections = 10 } = {}): Promise<Scene> {
  const schema = freshSchema();
  const inbox = createInbox({ schema });
  const pool = new pg.Pool({ connectionString: databaseUrl(), max: connections });
  // A connection that ends is no failure of a test.
  pool.on("error", () => undefined).on("connect", (client) => client.on("error", () => undefined));
  await inbox.migrate(pool);
  await pool.query(`create table "${schema}".effect (note text not null)`);

  async function inTransaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await pool.connect();
    let broken = false;
    try {
      await client.query("begin");
      const result = await work(client);
      await client.query("commit");
      return result;
    } catch (error) {
      await client.query("rollback").catch(() => {
        broken = true;
      });
      throw error;
    } finally {
      client.release(broken);
    }
  }

  const effect = (client: pg.PoolClient, note: string) => async () => {
    await client.query(`insert into "${schema}".effect values ($1)`, [note]);
    return { key: note };
  };

  return {
    schema,
    inbox,
    pool,
    inTransaction,
    effect,
    deliver: (key, options) => inTransaction((client) => inbox.once(client, key, effect(client, key), options)),
    async effects() {
      const sql = `select note, count(*)::int as n from "${schema}".effect group by note order by note`;
      const { rows } = await pool.query<{ note: string; n: number }>(sql);
      return Object.fromEntries(rows.map(({ note, n }) => [note, n]));
    },
    async keys() {
      const { rows } = await pool.query<{ key: string }>(`select key from "${schema}".makegood_inbox order by scope, key`);
      return rows.map(({ key }) => key);
    },
    async [Symbol.asyncDispose]() {
      await pool.end();
      await dropSchema(schema);
    },
  };
}

/** Resolves when that connection waits for a transaction of another one to end. */
export async function waits(pool: pg.Pool, client: pg.PoolClient): Promise<void> {
  const { processID } = client as unknown as { processID: number };
  for (;;) {
    const { rows } = await pool.query("select cardinality(pg_blocking_pids($1)) > 0 as waits", [processID]);
    if (rows[0].waits) return;
  }
}
