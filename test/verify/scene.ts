/**
 * A PostgreSQL store with messages in every state, and passes over it: what each case of conservation begins with.
 */
import pg from "pg";
import type { ClaimedMessage, NewMessage } from "../../src/message/message.ts";
import type { Settlement } from "../../src/message/settlement.ts";
import { sleep, systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import type { Beside, ConservationReport, PassOptions } from "../../src/store/conservation.ts";
import type { Store } from "../../src/store/store.ts";
import { DELIVERED, dead, definition, KEYED, newMessage, PLAIN, retry } from "../../src/testing/store-conformance/fixtures.ts";
import { settles } from "../../src/testing/store-conformance/scene.ts";
import { databaseUrl, dropSchema, emptyTables, freshSchema, openStore } from "../support/postgres.ts";

export const MONEY = "test/money";

export type Opened = Awaited<ReturnType<typeof openStore>>;

export interface VerifyScene {
  readonly store: Opened;
  readonly schema: string;
  readonly client: pg.Client;
  readonly id: () => string;
  /** Its enqueued ids. */
  accept(count: number, fields?: Partial<NewMessage>, now?: Date): Promise<string[]>;
  claim(count: number): Promise<ClaimedMessage[]>;
  settle(claimed: readonly ClaimedMessage[], settlement?: Settlement): Promise<void>;
  /** Without the triggers that keep people from doing this. */
  harm(sql: string, values?: unknown[]): Promise<void>;
  verify(reach?: PassOptions["reach"], beside?: Record<string, Beside>): Promise<ConservationReport>;
  /** Some of everything: waiting, ordered, claimed, retried, held, dead, resolved, discarded, delivered. */
  everything(): Promise<void>;
  /** As if nothing had ever been accepted, and no pass made. */
  empty(): Promise<void>;
  close(): Promise<void>;
}

const TABLES = [
  "message",
  "message_kept",
  "dedupe",
  "ready",
  "ready_ordered",
  "order_lock",
  "held",
  "lease",
  "attempt",
  "dead_letter",
].concat([
  "provenance",
  "conservation",
  ...["pass", "bucket", "open", "seal", "day", "divergence"].map((name) => `conservation_${name}`),
]);

export async function verifyScene(): Promise<VerifyScene> {
  const schema = freshSchema();
  const store = await openStore({ schema });
  for (const topic of [definition(PLAIN), definition(KEYED, "key"), { ...definition(MONEY), moneyField: "amount_micro" }])
    await store.topics.put(topic, "code");
  const client = new pg.Client({ connectionString: databaseUrl() });
  await client.connect();
  await client.query(`set search_path = "${schema}"`);
  const id = createIds();
  const scene: VerifyScene = {
    store,
    schema,
    client,
    id,
    async accept(count, fields = {}, now) {
      const messages = Array.from({ length: count }, () => newMessage(fields.id ?? id(), fields));
      await store.enqueue(messages, { now });
      return messages.map((message) => message.id);
    },
    claim: (count) => claimSome(store, count),
    async settle(claimed, settlement = DELIVERED) {
      await store.settle(settles(claimed, settlement));
    },
    async harm(sql, values = []) {
      await client.query("set session_replication_role = replica");
      await client.query(sql, values);
      await client.query("set session_replication_role = origin");
    },
    async verify(reach = "whole", beside = {}) {
      // Other files' transactions are on the same server, and what is younger than an open one waits for it.
      const { rows } = await client.query("select pg_current_xact_id()::text as xid");
      for (;;) {
        await store.conservation.pass({ reach });
        const [mark] = (await client.query("select from_xid::text as xid from conservation")).rows;
        if (BigInt(mark.xid) > BigInt(rows[0].xid)) break;
        await sleep(systemClock, 20);
      }
      return store.conservation.conclude(beside);
    },
    everything: () => everything(scene),
    empty: () => emptyTables(client, schema, TABLES),
    async close() {
      await client.end();
      await store.close();
      await dropSchema(schema);
    },
  };
  return scene;
}

export async function claimSome(store: Store, count: number): Promise<ClaimedMessage[]> {
  const lanes = (await store.lanes()).map(({ lane }) => ({ lane, limit: count }));
  const claimed = lanes.length > 0 ? await store.claim({ owner: "w", leaseMs: 60_000, lanes }) : [];
  return claimed.slice(0, count);
}

async function everything({ store, accept, claim, settle }: VerifyScene): Promise<void> {
  await accept(6, { topic: MONEY, payload: '{"amount_micro":12.50}' });
  await settle(await claim(6));
  const die = async (count: number): Promise<string[]> => {
    const ids = await accept(count, { tenantId: "a" });
    await settle(await claim(count), dead());
    return ids;
  };
  const dying = await die(6);
  const by = { actor: "test", reason: null };
  await store.intervene({ id: dying[0] as string, action: "resolve", ...by });
  await store.intervene({ id: dying[1] as string, action: "discard", ...by });
  await store.intervene({ id: dying[2] as string, action: "replay", ...by });
  await accept(4, { tenantId: "b" });
  await settle((await claim(3)).slice(0, 2), retry(60_000));
  await accept(3, { topic: KEYED, orderingKey: "k" });
  await accept(5);
  await accept(4, { topic: MONEY, payload: '{"amount_micro":3}' });
}
