// The limit, not an engine: the smallest outbox that SQL allows. One table, row leases, acknowledged by delete, no
// deduplication, no history, no retry policy, no fairness. For latency it wakes its worker with a NOTIFY per message.
import pg from "pg";
import { makePool, vacuumSchema } from "../lib/postgres-tables.mjs";
import { sleep } from "../lib/time.mjs";

const batch = 500;
const connections = 2;

const schema = `
  create schema raw;
  create table raw.outbox (
    id bigint generated always as identity primary key,
    namespace text not null,
    topic text not null,
    payload jsonb not null,
    state smallint not null default 0,
    attempts int not null default 0,
    due timestamptz not null default now(),
    leased_by text,
    leased_until timestamptz,
    created_at timestamptz not null default now());
  create index outbox_ready on raw.outbox (due, id) where state = 0;`;

const insertText = "insert into raw.outbox (namespace, topic, payload) values ('bench', 'messages', $1)";
const insertNotifyText = `with inserted as (${insertText}) select pg_notify('raw_outbox', '')`;
const insertManyText =
  "insert into raw.outbox (namespace, topic, payload) select 'bench', 'messages', p from unnest($1::jsonb[]) as p";
/** Acknowledges the batch before and leases the next one in one statement. */
const cycleText = `
  with done as (delete from raw.outbox where id = any ($3::bigint[]) and leased_by = $2)
  update raw.outbox o set state = 1, attempts = attempts + 1, leased_by = $2, leased_until = now() + interval '30 s'
  from (select id from raw.outbox where state = 0 and due <= now() order by due, id limit $1 for update skip locked) next
  where o.id = next.id returning o.id, o.topic, o.payload, o.attempts`;

const insert = (payload) => ({ name: "raw-insert", text: insertText, values: [JSON.stringify(payload)] });
const insertNotify = (payload) => ({ name: "raw-notify", text: insertNotifyText, values: [JSON.stringify(payload)] });
const insertMany = (payloads) => ({ name: "raw-many", text: insertManyText, values: [payloads.map((p) => JSON.stringify(p))] });

export default {
  key: "raw",
  name: "raw SQL",
  needs: "postgres",
  settings: `row lease, acknowledge + claim in one statement, ${batch} × ${connections} connections, named statements; latency: NOTIFY per message`,

  async setup({ pool }) {
    await pool.query(schema);
  },
  async reset({ pool }) {
    await pool.query("truncate raw.outbox");
  },
  async afterLoad({ pool }) {
    await vacuumSchema(pool, "raw");
  },

  async producer({ pgUrl }, mode) {
    const pool = makePool(pgUrl, 16);
    return {
      one: (payload) => pool.query(mode === "latency" ? insertNotify(payload) : insert(payload)),
      many: (payloads) => pool.query(insertMany(payloads)),
      inTransaction: (client, payload) => client.query(insert(payload)),
      close: () => pool.end(),
    };
  },

  async worker({ pgUrl }, mode, onMessage) {
    const clients = await Promise.all(Array.from({ length: mode === "latency" ? 1 : connections }, () => connect(pgUrl)));
    const listener = mode === "latency" ? await connect(pgUrl) : null;
    let stopped = false;
    let wake = () => {};
    let hinted = false;
    listener?.on("notification", () => {
      hinted = true;
      wake();
    });

    const rest = () =>
      listener === null ? sleep(20) : hinted ? null : Promise.race([sleep(500), new Promise((r) => (wake = r))]);
    const loop = async (client, index) => {
      const owner = `${process.pid}-${index}`;
      let ids = [];
      while (!stopped) {
        hinted = false;
        const { rows } = await cycle(client, [batch, owner, ids]);
        ids = rows.map((row) => row.id);
        for (const row of rows) onMessage(row.payload);
        if (ids.length === 0) await rest();
      }
      if (ids.length > 0) await client.query("delete from raw.outbox where id = any ($1::bigint[])", [ids]);
    };

    let loops = [];
    return {
      async start() {
        await listener?.query("listen raw_outbox");
        loops = clients.map(loop);
      },
      async stop() {
        stopped = true;
        wake();
        await Promise.all(loops);
        await Promise.all([...clients, listener].map((client) => client?.end()));
      },
    };
  },
};

async function connect(connectionString) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return client;
}

/** Two such statements can deadlock while they follow an update chain: the loser tries again. */
async function cycle(client, values) {
  for (;;) {
    try {
      return await client.query({ name: "raw-cycle", text: cycleText, values });
    } catch (error) {
      if (error.code !== "40P01") throw error;
    }
  }
}
