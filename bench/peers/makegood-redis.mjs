// Makegood on its Redis store, through its public doors only: the same messages as on PostgreSQL (half of them with a key, four
// tenants), fencing and history on. Node-redis by URL, which is what a user gets who names a URL.
import { randomBytes } from "node:crypto";
import { doors } from "../lib/product.mjs";
import { emptyRedis, redisUrl } from "../lib/redis-server.mjs";

const tenants = ["north", "east", "south", "west"];

async function open({ redis }, onMessage) {
  const { createMakegood, topic } = await doors.main();
  const { createRedisStore } = await doors.redis();
  const messages = topic("bench/messages", { sink: (payload) => onMessage(payload) });
  const store = createRedisStore({ redis: redisUrl(redis) });
  const onEvent = process.env.BENCH_EVENTS ? console.error : undefined;
  return { makegood: await createMakegood({ store, topics: [messages], onEvent }), messages };
}

export default {
  key: "makegood-redis",
  name: "Makegood on Redis",
  ours: true,
  needs: "redis",
  settings: "defaults, node-redis; half of the messages with a key, four tenants",

  async setup() {},
  async reset(context) {
    await emptyRedis(context.redis);
    const { makegood } = await open(context, () => {});
    await makegood.close();
  },
  async afterLoad() {},

  async producer(context) {
    const { makegood, messages } = await open(context, () => {});
    const run = randomBytes(4).toString("hex");
    const fields = ({ seq }) => ({
      tenantId: tenants[seq % tenants.length],
      key: (seq >> 2) % 2 === 0 ? `order-${run}-${seq}` : undefined,
    });
    return {
      one: (payload) => makegood.enqueue(messages, payload, fields(payload)),
      many: (payloads) =>
        makegood.enqueueMany(
          messages,
          payloads.map((payload) => ({ payload, ...fields(payload) })),
        ),
      close: () => makegood.close(),
    };
  },

  async worker(context, _mode, onMessage) {
    const { makegood } = await open(context, onMessage);
    return {
      async start() {
        makegood.work();
      },
      stop: () => makegood.close(),
    };
  },
};
