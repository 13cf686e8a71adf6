// Does an old open transaction slow the claims: the rate at the end of a drain against the rate at its start, with and without.
import pg from "pg";
import { load } from "../lib/load.mjs";
import { drain, windowRate } from "../lib/workers.mjs";

export const title = "long open transaction";
export const peers = ["makegood", "graphile"];
export const possible = ["makegood", "raw", "pgboss", "graphile"];

export async function measure(peer, { context, sizes, round, fresh, record, check }) {
  const { windowSize } = sizes;
  const { count, edge } = sizes.longTransaction;
  const windows = edge / windowSize;

  const run = async (held) => {
    await fresh("drain");
    await load(peer, context, count);
    const release = held ? await holdTransaction(context.pgUrl) : async () => {};
    const result = await drain(peer, context, { count, windowSize, timeoutMs: sizes.patienceMs }).finally(release);
    check(`enqueued ${count}`, result.handled === count && result.distinct === count, result);
    const last = count / windowSize;
    const start = windowRate(result.windowsMs, windowSize, 0, windows);
    const end = windowRate(result.windowsMs, windowSize, last - windows, last);
    return { ratio: end / start, end, rate: result.rate };
  };

  const results = {};
  for (const held of round % 2 === 0 ? [false, true] : [true, false]) results[held ? "held" : "control"] = await run(held);
  record("longtx_ratio", results.held.ratio);
  record("longtx_control", results.control.ratio);
  // End against start also holds the warm-up of the worker; this one does not.
  record("longtx_end_ratio", results.held.end / results.control.end);
  record("longtx_rate", results.held.rate);
  record("longtx_control_rate", results.control.rate);
}

/** It has a transaction id, so nothing that dies after it began can be vacuumed away. Returns how to end it. */
async function holdTransaction(connectionString) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query("begin");
  await client.query("select pg_current_xact_id()");
  return async () => {
    await client.query("rollback");
    await client.end();
  };
}
