// Does a long history slow the work: a drain of 100k after a million were delivered, against one with an empty history.
import { load } from "../lib/load.mjs";
import { drain } from "../lib/workers.mjs";

export const title = "history";
export const peers = ["makegood"];
export const possible = ["makegood", "pgboss"];

export async function measure(peer, { context, sizes, round, fresh, record, check }) {
  const { delivered, count } = sizes.history;
  const drained = async () => {
    await load(peer, context, count);
    const result = await drain(peer, context, { count, timeoutMs: sizes.patienceMs });
    check(`enqueued ${count}`, result.handled === count && result.distinct === count, result);
    return result.rate;
  };
  const cases = {
    async history_empty() {
      await fresh("drain");
      return drained();
    },
    async history_after() {
      await fresh("drain");
      await load(peer, context, delivered);
      const result = await drain(peer, context, { count: delivered, processes: 2, timeoutMs: sizes.patienceMs });
      check(`enqueued ${delivered}`, result.handled === delivered && result.distinct === delivered, result);
      return drained();
    },
  };
  const order = Object.keys(cases);
  if (round % 2 === 1) order.reverse();
  const rates = {};
  for (const name of order) rates[name] = await cases[name]();
  for (const name of order) record(name, rates[name]);
  record("history_ratio", rates.history_after / rates.history_empty);
}
