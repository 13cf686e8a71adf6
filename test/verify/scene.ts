/**
 * A PostgreSQL store with messages in every state, and passes over it: what each case of conservation begins with.
 */
import pg from "pg";
import { sleep, systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { definition, KEYED, PLAIN } from "../../src/testing/store-conformance/fixtures.ts";
import { databaseUrl, dropSchema, emptyTables, freshSchema, openStore } from "../support/postgres.ts";
import { type CaseScene, everything, type Hands, MONEY, movesOf } from "./cases.ts";

export type Opened = Awaited<ReturnType<typeof openStore>>;

export interface VerifyScene extends CaseScene {
  readonly store: Opened;
  readonly schema: string;
  readonly client: pg.Client;
  /** Without the triggers that keep people from doing this. */
  harm(sql: string, values?: unknown[]): Promise<void>;
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
    hands: handsOf((sql, values) => scene.harm(sql, values)),
    ...movesOf(store, id),
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

/** Rows of ready are copied first, to be brought back. */
function handsOf(harm: VerifyScene["harm"]): Hands {
  return {
    async unready(ids) {
      await harm("create temp table if not exists kept as select * from ready limit 0");
      await harm("truncate kept");
      await harm("insert into kept select * from ready where id = $1", [ids[0]]);
      for (const table of ["ready", "ready_ordered"]) await harm(`delete from ${table} where id = any ($1)`, [ids]);
      return () => harm("insert into ready overriding system value select * from kept");
    },
    unwrite: (ids) => harm("delete from message where id = any ($1)", [ids]),
    waitToo: (id) => harm("insert into ready (due, id, lane_id) select 'infinity', id, lane_id from message where id = $1", [id]),
    dieToo: (id) =>
      harm("insert into dead_letter (id, lane_id, attempts) select id, lane_id, 1 from message where id = $1", [id]),
    undie: (ids) => harm("delete from dead_letter where id = any ($1)", [ids]),
    repay: (ids, payload) => harm("update message set payload = $2 where id = any ($1)", [ids, payload]),
    async rename(id, to) {
      await harm("update message set id = $2 where id = $1", [id, to]);
      await harm("update attempt set message_id = $2 where message_id = $1", [id, to]);
    },
    evenOut: () => harm("update conservation_bucket set accepted_n = accepted_n - 1, delivered_n = delivered_n - 1"),
    editAccount: () => harm("update conservation_bucket set accepted_n = 2, accepted_hash = 0"),
    editSealedMoney: (amount) => harm("update conservation_bucket set accepted_money = $1 where sealed is not null", [amount]),
    editSeal: () => harm("update conservation_seal set n = 3"),
    cutSeals: () => harm("delete from conservation_seal"),
  };
}
