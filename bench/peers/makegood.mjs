// Makegood through its public doors only. Half of the messages carry a key, so deduplication is in place; four tenants;
// fencing and history are always on.
import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { vacuumSchema } from "../lib/postgres-tables.mjs";

const schema = "makegood";
const tenants = ["north", "east", "south", "west"];
const names = { drain: "bench/messages", latency: "bench/messages", http: "bench/http", "http-paced": "bench/http" };

/** BENCH_DIST names another build, to compare two of them. */
const dist = pathToFileURL(`${resolve(process.env.BENCH_DIST ?? fileURLToPath(new URL("../../dist", import.meta.url)))}/`);

/** Imported when first used, so that the peers can be measured while there is no build. */
async function open({ pgUrl, http }, mode, onMessage) {
  const { createMakegood, topic } = await import(new URL("index.js", dist));
  const { createPostgresStore } = await import(new URL("store/postgres/index.js", dist));
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
    const { makegood, messages } = await open(context, mode, () => {});
    // Another producer's keys are other keys: what is delivered is still remembered.
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
      inTransaction: (client, payload) => makegood.enqueue(messages, payload, { tx: client, ...fields(payload) }),
      close: () => makegood.close(),
    };
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
