// Runs one job and stops for ever before its nth statement, so that the parent can kill it exactly there. One JSON object a line.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import pg from "pg";

const { dist, url, schema, job, stopBefore } = JSON.parse(process.argv[2]);
const load = (path) => import(pathToFileURL(join(dist, path)).href);
const { createMakegood } = await load("index.js");
const { createPostgresStore } = await load("store/postgres/index.js");
const say = (fact) => process.stdout.write(`${JSON.stringify(fact)}\n`);

const mg = await createMakegood({ store: createPostgresStore({ url, schema }), log: "silent" });
let count = 0;
const { query } = pg.Client.prototype;
pg.Client.prototype.query = function stopping(...args) {
  count++;
  if (count !== stopBefore) return query.apply(this, args);
  say({ type: "stopped", before: String(args[0]?.text ?? args[0]).slice(0, 60) });
  return new Promise(() => {});
};
const report = await mg.jobs.run(job, { skipLeaderElection: true, batchSize: 10 });
say({ type: "done", report });
setInterval(() => {}, 1_000);
