// How fast messages are accepted over HTTP, each answer after its commit: 1, 16, 64 and 256 callers against one server process, and for
// `serve` what is left of 64 callers' rate when every message is delivered to a local receiver at the same time.
import { ratePerSecond } from "../lib/measure.mjs";
import { payload } from "../lib/payload.mjs";
import { poster } from "../lib/poster.mjs";
import { startReceiver } from "../lib/receiver.mjs";
import { quantile } from "../lib/stats.mjs";
import { nowMs } from "../lib/time.mjs";

export const title = "accept over HTTP";
export const peers = ["serve", "bare-http"];

const callers = [1, 16, 64, 256];

export async function measure(peer, bench) {
  for (const count of callers) await accepted(peer, bench, count);
  if (peer.delivers) await delivered(peer, bench);
}

async function accepted(peer, { context, sizes, fresh, record }, count) {
  await fresh("accept");
  const server = await peer.serve(context);
  const { post, close } = poster(server.url, count);
  let seq = 0;
  const latenciesMs = [];
  const call = async () => {
    const startMs = nowMs();
    await post(peer.body(payload(seq++)));
    latenciesMs.push(nowMs() - startMs);
    return 1;
  };
  try {
    await ratePerSecond(sizes.warmUpMs, count, call);
    await context.pool.query("checkpoint");
    latenciesMs.length = 0;
    record(`accept_${count}`, await ratePerSecond(sizes.acceptMs, count, call));
    record(`accept_p99_${count}`, quantile(latenciesMs, 0.99));
  } finally {
    await close();
    await server.stop();
  }
}

/** The same number of messages twice: accepted while the topic is paused, and accepted until the receiver has the last one. */
async function delivered(peer, { context, sizes, fresh, record, check }) {
  const { acceptDelivered: count } = sizes;
  const receiver = await startReceiver();
  const rate = async (paused) => {
    await fresh("accept");
    const server = await peer.serve(context, { url: receiver.url, paused });
    const { post, close } = poster(server.url, 64);
    let seq = 0;
    try {
      const { complete } = await receiver.expect(count, 120_000);
      const startMs = nowMs();
      const caller = async () => {
        while (seq < count) await post(peer.body(payload(seq++)));
      };
      await Promise.all(Array.from({ length: 64 }, caller));
      if (paused) return (count * 1000) / (nowMs() - startMs);
      await complete;
      const { received, distinct, lastMs } = await receiver.report();
      check(`accepted ${count}`, received === count && distinct === count, { handled: received, distinct });
      return (count * 1000) / (lastMs - startMs);
    } finally {
      await close();
      await server.stop();
    }
  };
  try {
    const only = await rate(true);
    record("accept_only", only);
    const both = await rate(false);
    record("accept_delivered", both);
    record("accept_delivered_ratio", both / only);
  } finally {
    await receiver.close();
  }
}
