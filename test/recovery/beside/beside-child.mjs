// A process that works on Redis with the home of its recovery in PostgreSQL, and tells how many messages it delivered. One JSON object a line.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const options = JSON.parse(process.argv[2]);
const load = (path) => import(pathToFileURL(join(options.dist, path)).href);
const { createMakegood, topic } = await load("index.js");
const { createPostgresStore } = await load("store/postgres/index.js");
const { createRedisStore } = await load("store/redis/index.js");

const say = (fact) => process.stdout.write(`${JSON.stringify(fact)}\n`);
let delivered = 0;
const order = topic("shop/order", { leaseMs: 2_000, sink: async () => say({ delivered: ++delivered }) });
const mg = await createMakegood({
  store: createRedisStore({ redis: options.redis, prefix: options.prefix }),
  recoveryHome: createPostgresStore({ url: options.url, schema: options.schema, poolMax: 4 }),
  topics: [order],
  pollMs: 100,
  log: "silent",
});
mg.work();
say({ type: "ready" });
process.on("SIGTERM", () => mg.close({ drainMs: 500 }));
