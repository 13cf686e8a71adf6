// Finalises one turn and stops for ever before statement n of it, so that the parent can kill it exactly there.
// It writes one JSON object a line.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import pg from "pg";

const { dist, url, schema, turn, warm, stopBefore } = JSON.parse(process.argv[2]);
const load = (path) => import(pathToFileURL(join(dist, path)).href);
const { createMakegood } = await load("index.js");
const { createPostgresStore, createPostgresUsageStore } = await load("store/postgres/index.js");
const { createUsage, usageTopic } = await load("presets/index.js");
const say = (fact) => process.stdout.write(`${JSON.stringify(fact)}\n`);

const topic = usageTopic();
const mg = await createMakegood({ store: createPostgresStore({ url, schema }), topics: [topic], log: "silent" });
const usage = await createUsage({ mg, store: createPostgresUsageStore({ url, schema }), topic });
const end = { outcome: "completed", usage: { inputTokens: 100, outputTokens: 100 } };
// Lanes, partitions and connections are made here, so that only the statements of the finalisation itself are counted.
await usage.finalize({ ...warm, ...end });

let count = 0;
const { query } = pg.Client.prototype;
pg.Client.prototype.query = function stopping(...args) {
  count++;
  if (count !== stopBefore) return query.apply(this, args);
  say({ type: "stopped", before: (args[0]?.text ?? args[0]).slice(0, 60) });
  return new Promise(() => {});
};
const result = await usage.finalize({ ...turn, ...end });
say({ type: "done", won: result.won, statements: count });
setInterval(() => {}, 1_000);
