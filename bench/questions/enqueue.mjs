// How fast are messages accepted, each call waiting for its commit: one caller, 16 callers, and bulk of 1000 by 4 callers.
import { ratePerSecond } from "../lib/measure.mjs";
import { payload } from "../lib/payload.mjs";

export const title = "enqueue";
export const peers = ["makegood", "raw", "pgboss", "graphile", "bullmq"];

const bulk = 1000;

export async function measure(peer, { context, sizes, fresh, record }) {
  const modes = {
    sequential: { callers: 1, call: (producer, next) => producer.one(payload(next())).then(() => 1) },
    callers16: { callers: 16, call: (producer, next) => producer.one(payload(next())).then(() => 1) },
    bulk: {
      callers: 4,
      call: (producer, next) => producer.many(Array.from({ length: bulk }, () => payload(next()))).then(() => bulk),
    },
  };
  for (const [metric, { callers, call }] of Object.entries(modes)) {
    await fresh("drain");
    const producer = await peer.producer(context, "drain");
    let seq = 0;
    const next = () => seq++;
    // Connections are opened, statements prepared and code compiled before the clock runs.
    await ratePerSecond(sizes.warmUpMs, callers, () => call(producer, next));
    await context.pool.query("checkpoint");
    record(metric, await ratePerSecond(sizes.enqueueMs, callers, () => call(producer, next)));
    await producer.close();
  }
}
