// Makegood through its public doors only. Half of the messages carry a key, so deduplication is in place; four tenants;
// fencing and history are always on.
import { ourProducer } from "../lib/our-producer.mjs";
import { vacuumSchema } from "../lib/postgres-tables.mjs";
import { doors } from "../lib/product.mjs";

const schema = "makegood";
const names = { drain: "bench/messages", latency: "bench/messages", http: "bench/http", "http-paced": "bench/http" };

async function open({ pgUrl, http }, mode, onMessage) {
  const { createMakegood, topic } = await doors.main();
  const { createPostgresStore } = await doors.postgres();
  const name = names[mode];
  const sink = name === "bench/http" ? { kind: "http", url: http.url } : (payload) => onMessage(payload);
  const options = name === "bench/http" ? { sink, concurrency: http.concurrency } : { sink };
  const messages = topic(name, options);
  const store = createPostgresStore({ url: pgUrl });
  const makegood = await createMakegood({
    store,
    topics: [messages],
    onEvent: process.env.BENCH_EVENTS ? console.error : undefined,
  });
  return { makegood, messages };
}

export default {
  key: "makegood",
  name: "Makegood",
  needs: "postgres",
  settings: "defaults; half of the messages with a key, four tenants",

  async setup() {},
  /** The next one that opens the store makes the schema anew: nothing here depends on what is in it. */
  async reset(context) {
    await context.pool.query(`drop schema if exists ${schema} cascade`);
    const { makegood } = await open(context, "drain", () => {});
    await makegood.close();
  },
  async afterLoad({ pool }) {
    await vacuumSchema(pool, schema);
  },

  async producer(context, mode) {
    return ourProducer(await open(context, mode, () => {}));
  },

  async worker(context, mode, onMessage) {
    const { makegood } = await open(context, mode, onMessage);
    return {
      async start() {
        makegood.work();
      },
      stop: () => makegood.close(),
    };
  },
};
