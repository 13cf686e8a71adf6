// The latencies that the settlement preset is held to, on each store, one call after the other with a backlog of unsettled
// obligations: to keep one (put), to take up to 50 that are due (ready), what finalize() adds to the same signed POST made with
// undici alone, and a health answer.
import { Agent, request } from "undici";
import { doors } from "../lib/product.mjs";
import { startReceiver } from "../lib/receiver.mjs";
import { quantile } from "../lib/stats.mjs";
import { nowMs } from "../lib/time.mjs";

export const title = "settlement";
export const peers = ["redis-everysec", "redis-always", "postgres-store"];

const topicName = "billing/finalize";
const readyMax = 50;
const silent = { debug() {}, info() {}, warn() {}, error() {} };

export async function measure(peer, { context, sizes: { settlement: sizes }, fresh, record }) {
  await fresh("settlement");
  const opened = await peer.openStore(context);
  const bench = { ...opened, sizes, record };
  try {
    await opened.store.open();
    await kernel(bench);
    if (opened.seedsPort !== null) await seeds(bench);
    await preset(bench);
  } finally {
    await opened.store.close();
    await opened.close();
  }
}

/** Times `call`, one after the other; `before` is outside the clock, and the first calls warm up. */
async function timed({ record, sizes }, metric, call, before = () => {}) {
  const takenMs = [];
  for (let i = 0; i < sizes.warmUp + sizes.count; i++) {
    await before(i);
    const startMs = nowMs();
    await call(i);
    if (i >= sizes.warmUp) takenMs.push(nowMs() - startMs);
  }
  record(`${metric}_p50`, quantile(takenMs, 0.5));
  record(`${metric}_p99`, quantile(takenMs, 0.99));
}

const obligation = (name) => ({
  reservation_id: `res-${name}`,
  tenant_id: "tenant-1",
  actual_cost_micro: "1500000",
  trace_id: "",
});

/** The store itself: what waits is enqueued; what is due is claimed, as a pass of replays does, and given back outside the clock. */
async function kernel(bench) {
  const { store, sizes } = bench;
  const { createMakegood, topic } = await doors.main();
  const messages = topic(topicName, { sink: () => undefined });
  const makegood = await createMakegood({ store, topics: [messages], sharedStore: true });
  const keep = (name) => {
    const { reservation_id: key, tenant_id: tenantId, ...payload } = obligation(name);
    return makegood.enqueue(messages, payload, { key, tenantId });
  };
  for (let i = 0; i < sizes.backlog; i++) await keep(`waiting-${i}`);
  await timed(bench, "settlement_put", (i) => keep(`put-${i}`));

  let claimed = [];
  const take = async () => {
    const lanes = (await store.lanes()).map(({ lane }) => ({ lane, limit: readyMax }));
    claimed = await store.claim({ owner: "bench", leaseMs: 60_000, lanes });
    // What was given back lies before the mark from which the store reads on; the first short batch ends the mark.
    const more = lanes.map(({ lane }) => ({ lane, limit: readyMax - claimed.length }));
    if (claimed.length < readyMax) claimed.push(...(await store.claim({ owner: "bench", leaseMs: 60_000, lanes: more })));
    if (claimed.length !== readyMax) throw new Error(`${claimed.length} of ${readyMax} were ready`);
  };
  const giveBack = async () => {
    const release = { durationMs: null, settlement: { kind: "release" } };
    if (claimed.length > 0) await store.settle(claimed.map(({ id, claim, attempt }) => ({ id, claim, attempt, ...release })));
  };
  await timed(bench, "settlement_ready", take, giveBack);
  await giveBack();
  await makegood.close();
}

/** The seeds' port under its own names. */
async function seeds(bench) {
  const { seedsPort, sizes } = bench;
  const entry = (name) => ({ ...obligation(name), reason: "http_503", response_status: 503, attempt_count: 1 });
  const keep = async (name) => {
    const result = await seedsPort.put(entry(name));
    if (result !== "created") throw new Error(`the seeds' port answered ${result}`);
  };
  for (let i = 0; i < sizes.backlog; i++) await keep(`waiting-${i}`);
  await timed(bench, "settlement_seeds_put", (i) => keep(`put-${i}`));
  await timed(bench, "settlement_seeds_ready", async () => {
    const { length } = await seedsPort.getReady();
    if (length !== readyMax) throw new Error(`${length} of ${readyMax} were ready`);
  });
}

/** The preset on this store: finalize() beside the bare call, in turn, and health. */
async function preset(bench) {
  const { createServiceSigner, createSettlementClient } = await doors.presets();
  const secret = "a secret of the benchmark, long enough";
  const signer = createServiceSigner({ alg: "HS256", secret, issuer: "bench", audience: "billing" });
  const receiver = await startReceiver();
  const options = { billingUrl: receiver.url, s2sSigner: signer, dlqStore: bench.store, log: silent };
  const client = createSettlementClient(options);
  const agent = new Agent({ connections: 1 });
  try {
    await client.ready();
    await overhead(bench, bareCall(receiver.url, signer, agent), async (name) => {
      const { status } = await client.finalize(obligation(name));
      if (status !== "finalized") throw new Error(`finalize() answered ${status}`);
    });
    await timed(bench, "settlement_health", async () => {
      const { dlq_size: size } = await client.health();
      if (size === null) throw new Error("health did not know the size");
    });
  } finally {
    await client.close();
    await agent.close();
    await receiver.close();
  }
}

function bareCall(url, signer, dispatcher) {
  const target = new URL("api/internal/finalize", url);
  return async (name) => {
    const { reservation_id: reservationId, tenant_id: tenantId, actual_cost_micro: actualCostMicro } = obligation(name);
    const token = await signer.sign({ subject: null, tenantId, reservationId });
    const headers = {
      "content-type": "application/json",
      "user-agent": "makegood",
      authorization: `Bearer ${token}`,
      "idempotency-key": reservationId,
    };
    const body = JSON.stringify({ reservationId, accountId: tenantId, actualCostMicro });
    const response = await request(target, { method: "POST", dispatcher, headers, body });
    await response.body.text();
    if (response.statusCode !== 200) throw new Error(`the receiver answered ${response.statusCode}`);
  };
}

/** In turn, each first every other time: both meet the same machine. */
async function overhead({ record, sizes }, bare, ours) {
  const takenMs = { bare: [], ours: [] };
  const calls = Object.entries({ bare, ours });
  for (let i = 0; i < sizes.warmUp + sizes.count; i++) {
    for (const [name, call] of i % 2 === 0 ? calls : calls.toReversed()) {
      const startMs = nowMs();
      await call(`${name}-${i}`);
      if (i >= sizes.warmUp) takenMs[name].push(nowMs() - startMs);
    }
  }
  for (const [name, q] of [
    ["p50", 0.5],
    ["p99", 0.99],
  ]) {
    record(`settlement_bare_${name}`, quantile(takenMs.bare, q));
    record(`settlement_finalize_${name}`, quantile(takenMs.ours, q));
    record(`settlement_overhead_${name}`, quantile(takenMs.ours, q) - quantile(takenMs.bare, q));
  }
}
