// Makegood on its Redis store, through its public doors only: the same messages as on PostgreSQL (half of them with a key, four
// tenants), fencing and history on. Node-redis by URL, which is what a user gets who names a URL.
import { ourProducer } from "../lib/our-producer.mjs";
import { doors } from "../lib/product.mjs";
import { emptyRedis, redisUrl } from "../lib/redis-server.mjs";

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
    return ourProducer(await open(context, () => {}));
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
