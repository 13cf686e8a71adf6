// Does a deep backlog slow the claims: the first 60k of a million against a backlog of 60k, in the same round.
import { load } from "../lib/load.mjs";
import { drain, windowRate } from "../lib/workers.mjs";

export const title = "depth";
export const peers = ["makegood"];
export const possible = ["makegood", "raw", "pgboss", "graphile", "bullmq"];

export async function measure(peer, { context, sizes, round, fresh, record }) {
  const { windowSize } = sizes;
  const { shallow, deep } = sizes.depth;
  const firstRate = async (count) => {
    await fresh("drain");
    await load(peer, context, count);
    const { windowsMs } = await drain(peer, context, { count, target: shallow, windowSize, timeoutMs: sizes.patienceMs });
    return windowRate(windowsMs, windowSize, 0, shallow / windowSize);
  };
  const rates = {};
  for (const count of round % 2 === 0 ? [shallow, deep] : [deep, shallow]) rates[count] = await firstRate(count);
  record("depth_shallow", rates[shallow]);
  record("depth_deep", rates[deep]);
  record("depth_ratio", rates[deep] / rates[shallow]);
}
