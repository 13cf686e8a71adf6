// How long from the enqueue call to the start of the handler, at a calm 50 messages per second.
import { payload } from "../lib/payload.mjs";
import { quantile } from "../lib/stats.mjs";
import { nowMs, paced, sleep } from "../lib/time.mjs";
import { startWorkers } from "../lib/workers.mjs";

export const title = "latency";
export const peers = ["makegood", "raw", "pgboss", "graphile", "bullmq"];

export async function measure(peer, { context, sizes, fresh, record, check }) {
  const { perSecond, count, skipped, settleInMs } = sizes.latency;
  await fresh("latency");
  const workers = await startWorkers({ peer, mode: "latency", context, seqMax: count });
  const producer = await peer.producer(context, "latency");
  workers.go();
  await sleep(settleInMs);

  const failures = [];
  let callMs = 0;
  const send = async (seq) => {
    const startMs = nowMs();
    await producer.one(payload(seq, startMs)).catch((error) => failures.push(error));
    callMs = Math.max(callMs, nowMs() - startMs);
  };
  await paced(perSecond, count, (seq) => void send(seq));
  const endMs = nowMs();
  await workers.until((handled) => handled >= count, 20_000);
  const waitedMs = nowMs() - endMs;
  await producer.close();
  const [report] = await workers.stop();
  if (waitedMs > 2_000) {
    const slowestMs = Math.max(...report.latenciesMs);
    // Whether it was the call itself or the way to the worker is all there is to know afterwards.
    console.error(`${peer.name}: waited ${waitedMs} ms for the last; slowest call ${callMs} ms, slowest message ${slowestMs} ms`);
  }
  if (failures.length > 0) throw failures[0];

  const latenciesMs = report.latenciesMs.slice(skipped);
  record("latency_p50", quantile(latenciesMs, 0.5));
  record("latency_p99", quantile(latenciesMs, 0.99));
  const distinct = report.seen.reduce((sum, times) => sum + Math.min(times, 1), 0);
  check(`enqueued ${count}`, report.handled === count && distinct === count, { handled: report.handled, distinct });
}
