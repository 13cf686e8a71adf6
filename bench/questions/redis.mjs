// How far the Redis store is from the smallest Lua script, and how far ahead of BullMQ, on the same server: puts by one caller, by 16 and
// in bulk, a drain by one process; and what a message costs the server in scripts, which noise on the machine changes little.
import { load } from "../lib/load.mjs";
import { ratePerSecond } from "../lib/measure.mjs";
import { payload } from "../lib/payload.mjs";
import { scriptUs } from "../lib/redis-server.mjs";
import { drain } from "../lib/workers.mjs";

export const title = "Redis store";
export const peers = ["makegood-redis", "raw-redis", "bullmq"];

const bulk = 1000;
const puts = {
  redis_sequential: { callers: 1, size: 1 },
  redis_callers16: { callers: 16, size: 1 },
  redis_bulk: { callers: 4, size: bulk },
};

export async function measure(peer, bench) {
  for (const [metric, shape] of Object.entries(puts)) await put(peer, metric, shape, bench);
  await drained(peer, bench);
}

async function put(peer, metric, { callers, size }, { context, sizes, fresh, record }) {
  await fresh("drain");
  const producer = await peer.producer(context, "drain");
  let seq = 0;
  const call = async () => {
    if (size === 1) await producer.one(payload(seq++));
    else await producer.many(Array.from({ length: size }, () => payload(seq++)));
    return size;
  };
  await ratePerSecond(sizes.warmUpMs, callers, call);
  const [usBefore, before] = [await scriptUs(context.redis), seq];
  record(metric, await ratePerSecond(sizes.enqueueMs, callers, call));
  record(`${metric}_us`, ((await scriptUs(context.redis)) - usBefore) / (seq - before));
  await producer.close();
}

async function drained(peer, { context, sizes, fresh, record, check }) {
  const count = sizes.drainCount;
  await fresh("drain");
  await load(peer, context, count);
  const usBefore = await scriptUs(context.redis);
  const result = await drain(peer, context, { count, timeoutMs: sizes.patienceMs });
  record("redis_drain", result.rate);
  record("redis_drain_us", ((await scriptUs(context.redis)) - usBefore) / result.handled);
  record("redis_drain_cpu", result.cpuUsPerMessage);
  check(`enqueued ${count}`, result.handled === count && result.distinct === count, result);
}
