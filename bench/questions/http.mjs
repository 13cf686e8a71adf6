// What delivery to a real local HTTP receiver costs against a bare undici loop with the same concurrency: a backlog's rate,
// and at 50 per second the time from the call (enqueue there, request here) to the arrival of the body.
import { load } from "../lib/load.mjs";
import { payload } from "../lib/payload.mjs";
import { startReceiver } from "../lib/receiver.mjs";
import { quantile } from "../lib/stats.mjs";
import { nowMs, paced, sleep } from "../lib/time.mjs";
import { startWorkers } from "../lib/workers.mjs";

export const title = "HTTP delivery";
export const peers = ["makegood", "undici"];

export async function measure(peer, bench) {
  const receiver = await startReceiver();
  try {
    await backlog(peer, bench, receiver);
    await calm(peer, bench, receiver);
  } finally {
    await receiver.close();
  }
}

async function backlog(peer, { context: base, sizes, fresh, record, check }, receiver) {
  const { count, concurrency } = sizes.http;
  const context = { ...base, http: { url: receiver.url, concurrency, count } };
  await fresh("http");
  if (peer.producer !== undefined) await load(peer, context, count, "http");
  const { complete } = await receiver.expect(count, 120_000);
  const workers = await startWorkers({ peer, mode: "http", context });
  workers.go();
  await complete;
  const [worker] = await workers.stop();
  const { received, distinct, lastMs } = await receiver.report();
  record("http_rate", (received * 1000) / (lastMs - worker.startMs));
  record("http_cpu", worker.cpuUs / received);
  check(`enqueued ${count}`, received === count && distinct === count, { handled: received, distinct });
}

async function calm(peer, { context: base, sizes, fresh, record }, receiver) {
  const { perSecond, count, skipped, settleInMs } = sizes.http.paced;
  const { concurrency } = sizes.http;
  const context = { ...base, http: { url: receiver.url, concurrency, count, perSecond } };
  await fresh("http");
  const { complete } = await receiver.expect(count, settleInMs + (count / perSecond) * 1000 + 20_000);
  const workers = await startWorkers({ peer, mode: "http-paced", context });
  const producer = await peer.producer?.(context, "http");
  workers.go();
  if (producer !== undefined) {
    await sleep(settleInMs);
    await paced(perSecond, count, (seq) => producer.one(payload(seq, nowMs())).catch(console.error));
  }
  await complete;
  await producer?.close();
  await workers.stop();
  const latenciesMs = (await receiver.report()).latenciesMs.slice(skipped);
  record("http_p50", quantile(latenciesMs, 0.5));
  record("http_p99", quantile(latenciesMs, 0.99));
}
