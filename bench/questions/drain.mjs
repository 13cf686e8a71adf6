// How fast is a backlog of 100k handled by one and by two processes, at what CPU per message, and is each handled once.
import { load } from "../lib/load.mjs";
import { drain } from "../lib/workers.mjs";

export const title = "drain";
export const peers = ["makegood", "raw", "pgboss", "graphile", "bullmq"];

export async function measure(peer, { context, sizes, fresh, record, check }) {
  const count = sizes.drainCount;
  for (const processes of [1, 2]) {
    await fresh("drain");
    await load(peer, context, count);
    const result = await drain(peer, context, { count, processes, timeoutMs: sizes.patienceMs });
    record(`drain${processes}`, result.rate);
    if (processes === 1) record("cpu", result.cpuUsPerMessage);
    check(`${processes} process(es): enqueued ${count}`, result.handled === count && result.distinct === count, result);
  }
}
