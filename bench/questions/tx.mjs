// How many transactions per second with a business row and a message in each: begin, insert, enqueue, commit, on 16 connections.
import { ratePerSecond } from "../lib/measure.mjs";
import { payload } from "../lib/payload.mjs";
import { makePool } from "../lib/postgres-tables.mjs";

export const title = "transactional enqueue";
/** BullMQ on Redis has no such thing. */
export const peers = ["makegood", "raw", "pgboss", "graphile"];

const connections = 16;
const table = `create table if not exists public.bench_order (
  id bigint generated always as identity primary key, customer text not null, amount int not null, created_at timestamptz not null default now())`;
const insertText = "insert into public.bench_order (customer, amount) values ($1, $2) returning id";

export async function measure(peer, { context, sizes, fresh, record }) {
  await fresh("drain");
  await context.pool.query(table);
  await context.pool.query("truncate public.bench_order");
  const producer = await peer.producer(context, "drain");
  const pool = makePool(context.pgUrl, connections);
  const clients = await Promise.all(Array.from({ length: connections }, () => pool.connect()));
  let seq = 0;

  const transaction = async (caller) => {
    const client = clients[caller];
    await client.query("begin");
    await client.query({ name: "bench-order", text: insertText, values: ["cust_8f14e45fceea167a", 12345] });
    await producer.inTransaction(client, payload(seq++));
    await client.query("commit");
    return 1;
  };
  // Code that has not been compiled yet is not what is asked about.
  await ratePerSecond(sizes.warmUpMs, connections, transaction);
  await context.pool.query("checkpoint");
  record("transaction", await ratePerSecond(sizes.transactionMs, connections, transaction));

  for (const client of clients) client.release();
  await pool.end();
  await producer.close();
}
