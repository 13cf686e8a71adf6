/** A Makegood on PostgreSQL whose records are old: rows of each class, some of which must never go. */
import { createMakegood, type Makegood, type MakegoodOptions } from "../../src/create.ts";
import type { MakegoodEvent } from "../../src/observe/events.ts";
import { createIds } from "../../src/platform/ids.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { databaseUrl, dropSchema, freshSchema, withClient } from "../support/postgres.ts";

export const DAY = 86_400_000;

export interface RetentionScene extends AsyncDisposable {
  readonly schema: string;
  readonly mg: Makegood;
  readonly events: MakegoodEvent[];
  sql<T = Record<string, unknown>>(text: string, values?: unknown[]): Promise<T[]>;
  count(table: string, where?: string): Promise<number>;
  /** A second process on the same schema. */
  another(options?: Partial<MakegoodOptions>): Promise<Makegood>;
}

export async function retentionScene(options: Partial<MakegoodOptions> = {}): Promise<RetentionScene> {
  const schema = freshSchema();
  const made: Makegood[] = [];
  const events: MakegoodEvent[] = [];
  const open = async (how: Partial<MakegoodOptions> = {}): Promise<Makegood> => {
    const store = createPostgresStore({ url: databaseUrl(), schema });
    const onEvent = (event: MakegoodEvent) => void events.push(event);
    const mg = await createMakegood({ store, log: "silent", onEvent, ...options, ...how });
    made.push(mg);
    return mg;
  };
  const mg = await open();
  const sql = <T>(text: string, values: unknown[] = []): Promise<T[]> =>
    withClient(async (client) => {
      await client.query(`set search_path = "${schema}"`);
      return (await client.query(text, values)).rows as T[];
    });
  return {
    ...{ schema, mg, events, sql, another: open },
    count: async (table, where = "true") =>
      Number((await sql<{ n: string }>(`select count(*) as n from ${table} where ${where}`))[0]?.n),
    async [Symbol.asyncDispose]() {
      for (const one of made) await one.close();
      await dropSchema(schema);
    },
  };
}

/** Lines of provenance, each of a message of its own that is gone, so many days old. */
export async function provenanceRows(scene: Pick<RetentionScene, "sql">, rows: number, days: number): Promise<void> {
  await scene.sql(
    `insert into provenance (at, message_id, actor, action, reason)
      select statement_timestamp() - $2 * interval '1 day', gen_random_uuid(), 'ann', 'resolve', 'row ' || g from generate_series(1, $1::int) g`,
    [rows, days],
  );
}

export const ids = createIds();
