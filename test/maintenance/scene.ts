/** A Makegood on PostgreSQL whose records are old: rows of each class, some of which must never go. */
import { createMakegood, type Makegood, type MakegoodOptions } from "../../src/create.ts";
import { topic } from "../../src/index.ts";
import type { MakegoodEvent } from "../../src/observe/events.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { auditOf } from "../../src/store/audit.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { DELIVERED, dead, newMessage } from "../../src/testing/store-conformance/fixtures.ts";
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

/** An audit record that was stored so many days ago. */
export async function writeAudit({ store }: Makegood, eventId: string, days: number, correlationId = "c"): Promise<void> {
  const now = new Date(Date.now() - days * DAY);
  const record = { auditType: "ai-decisions", correlationId, occurredAt: now, actor: "ann", resource: "r", outcome: "ok" };
  await auditOf(store)?.write({ ...record, eventId, payload: JSON.stringify({ eventId }) }, { now });
}

/** Delivers nothing here: what becomes of its messages the tests say. */
export const CHARGE = topic("shop/charge", { sink: () => {} });

/** Messages of three days ago, one for each; the key says which it is. */
export async function settledLongAgo({ store }: Makegood, states: readonly ("delivered" | "resolved" | "open")[]): Promise<void> {
  const startMs = Date.now() - 3 * DAY;
  const at = (seconds: number) => ({ now: new Date(startMs + seconds * 1_000) });
  const oldIds = createIds({ ...systemClock, wallMs: () => startMs });
  const messages = states.map((state, i) => newMessage(oldIds(), { topic: CHARGE.name, key: `${state} ${i}` }));
  await store.enqueue(messages, at(0));
  const ids = messages.map(({ id }) => id);
  const claimed = await store.claim({ owner: "w", leaseMs: 30_000, lanes: [], ids, ...at(1) });
  for (const { id, claim, attempt, key } of claimed) {
    const [state] = (key ?? "").split(" ");
    const settlement = state === "delivered" ? DELIVERED : dead();
    await store.settle([{ id, claim, attempt, durationMs: 1, settlement }], at(2));
    if (state === "resolved") await store.intervene({ id, action: "resolve", actor: "ann", reason: "paid", ...at(3) });
  }
}

export const ids = createIds();
