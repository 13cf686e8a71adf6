// Fills a peer with messages through its own bulk call, and leaves its tables vacuumed, analyzed and checkpointed.
import { payload } from "./payload.mjs";
import { sleep } from "./time.mjs";

const batch = 1000;
const callers = 4;

export async function load(peer, context, count, mode = "drain") {
  const producer = await peer.producer(context, mode);
  let next = 0;
  const caller = async () => {
    while (next < count) {
      const first = next;
      next = Math.min(count, first + batch);
      await producer.many(Array.from({ length: next - first }, (_, i) => payload(first + i)));
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  await producer.close();
  await peer.afterLoad(context);
  await context.pool.query("checkpoint");
  await sleep(200);
}
