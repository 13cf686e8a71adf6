// A worker with its scheduler, which freezes itself with SIGSTOP just before it commits a led write. One JSON object a line.
import { writeSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import pg from "pg";

const { dist, url, schema, options, freezeAt } = JSON.parse(process.argv[2]);
const load = (path) => import(pathToFileURL(join(dist, path)).href);
const { createMakegood } = await load("index.js");
const { createPostgresStore } = await load("store/postgres/index.js");
const say = (fact) => writeSync(1, `${JSON.stringify(fact)}\n`);

const texts = new WeakMap();
const { query } = pg.Client.prototype;
let frozen = freezeAt === null;
pg.Client.prototype.query = function freezing(...args) {
  const text = String(args[0]?.text ?? args[0]);
  if (text === "begin") texts.set(this, "");
  else texts.set(this, `${texts.get(this) ?? ""}${text}`);
  const before = texts.get(this) ?? "";
  if (!frozen && text === "commit" && before.includes("led_write") && new RegExp(freezeAt).test(before)) {
    frozen = true;
    say({ type: "frozen" });
    process.kill(process.pid, "SIGSTOP");
  }
  return query.apply(this, args);
};

const ran = new Set();
const onEvent = (event) => {
  if (event.type === "job" && !ran.has(event.name)) say({ type: "ran", name: event.name });
  if (event.type === "job") ran.add(event.name);
  if (event.type === "job" && event.result !== "done") say({ type: "job", name: event.name, result: event.result });
  if (event.type === "lifecycle" && event.what === "leader") say({ type: "leads", name: event.detail.name });
};
const mg = await createMakegood({ store: createPostgresStore({ url, schema }), log: "silent", onEvent, ...options });
mg.work();
say({ type: "started" });
