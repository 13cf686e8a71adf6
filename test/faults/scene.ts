/**
 * One fault's scene: a schema of its own, a Makegood that only sends, a receiver where one is wanted, and the history that
 * everything is checked against at the end.
 */
import pg from "pg";
import type { MakegoodOptions } from "../../src/create.ts";
import { type AnyTopic, createMakegood, type Makegood, type MakegoodEvent, type TopicName } from "../../src/index.ts";
import type { NewMessage } from "../../src/message/message.ts";
import { payloadHash } from "../../src/message/validate.ts";
import { createIds } from "../../src/platform/ids.ts";
import { isRecoveryTopic } from "../../src/recovery/topics.ts";
import { createPostgresStore, type PostgresStoreOptions } from "../../src/store/postgres/index.ts";
import type { Store } from "../../src/store/store.ts";
import { History, violations } from "../support/history.ts";
import { databaseUrl, freshSchema } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import type { Receiver } from "../support/receiver.ts";

export interface Scene extends AsyncDisposable {
  readonly url: string;
  readonly schema: string;
  readonly store: Store;
  readonly mg: Makegood;
  readonly history: History;
  readonly events: MakegoodEvent[];
  of<T extends MakegoodEvent["type"]>(type: T): Extract<MakegoodEvent, { type: T }>[];
  /** Enqueues `count` messages, keyed `<prefix>-<n>`, and writes them into the history. Returns their ids. */
  send(topic: TopicName, count: number, make?: (n: number) => unknown, prefix?: string): Promise<string[]>;
  /** How many are delivered, pending, processing, dead. */
  /** Without what the recovery engine sends itself. */
  counts(): Promise<Record<"pending" | "processing" | "delivered" | "dead", number>>;
  /** Waits until nothing is pending or processing. */
  settled(ms?: number): Promise<void>;
  check(options?: { receiver?: Receiver; attemptsMax?: number; dead?: string[] }): Promise<string[]>;
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
}

export interface SceneOptions extends Partial<Omit<MakegoodOptions, "store" | "topics">> {
  readonly topics?: readonly AnyTopic[];
  /** Another server or role than the test run's. */
  readonly url?: string;
  /** The way of this process's own store to the server; absent: straight. */
  readonly via?: (url: string) => string;
  readonly storeOptions?: Partial<PostgresStoreOptions>;
}

export async function scene(options: SceneOptions = {}): Promise<Scene> {
  const { topics = [], url = databaseUrl(), via = (same: string) => same, storeOptions, ...rest } = options;
  const schema = freshSchema();
  const store = createPostgresStore({ url: via(url), schema, ...storeOptions });
  const direct = createPostgresStore({ url, schema, poolMax: 2 });
  const events: MakegoodEvent[] = [];
  // First, because it migrates: that may take longer than the short timeouts some faults give the other one.
  await direct.open();
  const mg = await createMakegood({ pollMs: 200, ...rest, store, topics, onEvent: (event) => events.push(event) });
  const history = new History();

  const sql: Scene["sql"] = async (text, values) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      await client.query(`set search_path = "${schema}"`);
      return (await client.query(text, values)).rows;
    } finally {
      await client.end();
    }
  };

  const counts: Scene["counts"] = async () => {
    const found = { pending: 0, processing: 0, delivered: 0, dead: 0 };
    for (const { topic, status, count } of await direct.counts({ delivered: true })) {
      if (!isRecoveryTopic(topic)) found[status] += count;
    }
    return found;
  };

  return {
    url,
    schema,
    store: direct,
    mg,
    history,
    events,
    of: (type) => events.filter((event): event is Extract<MakegoodEvent, { type: typeof type }> => event.type === type),
    async send(topic, count, make = (n) => ({ n }), prefix = "k") {
      const ids: string[] = [];
      for (let from = 0; from < count; from += 500) {
        const batch = Array.from({ length: Math.min(500, count - from) }, (_, i) => ({
          key: `${prefix}-${from + i}`,
          payload: make(from + i),
        }));
        const results = await mg.enqueueMany(topic, batch);
        for (const [i, { id }] of results.entries()) {
          ids.push(id);
          history.ok(batch[i]!.key, JSON.stringify(batch[i]!.payload));
        }
      }
      return ids;
    },
    counts,
    async settled(ms = 60_000) {
      await until(
        "everything is settled",
        async () => {
          const { pending, processing } = await counts();
          return pending + processing === 0;
        },
        ms,
      );
    },
    check: ({ receiver, attemptsMax, dead } = {}) =>
      violations({ url, schema, history, store: direct, arrivals: receiver?.arrivals, attemptsMax, dead }),
    sql,
    async [Symbol.asyncDispose]() {
      await mg.close({ drainMs: 0 });
      await direct.close();
      await sql(`drop schema "${schema}" cascade`);
    },
  };
}

const ids = createIds();

/** A message as a store takes it. */
export function newMessage(topic: string, key: string | null = null, payload = '{"n":1}'): NewMessage {
  const fields = { tenantId: null, delayMs: 0, priority: 0, orderingKey: null, traceparent: null, schemaVersion: null };
  return { ...fields, id: ids(), topic, key, payload, payloadHash: payloadHash(payload) };
}
