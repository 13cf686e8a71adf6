// What retention costs the work beside it: a history of ten million rows (delivered messages and their attempts, days past their time), and a drain with
// and without a day of it leaving at the same moment. Prints the rates in turns, their ratio (at least 0.9), and what a day's leaving took.
//   npm run bench:retention [-- --rows 10000000 --days 5 --drain 200000 --rounds 5 --archive]
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import pg from "pg";
import { median } from "./lib/stats.mjs";

const options = { rows: 10_000_000, days: 5, drain: 200_000, rounds: 5 };
const { values } = parseArgs({
  options: {
    archive: { type: "boolean" },
    ...Object.fromEntries(Object.keys(options).map((name) => [name, { type: "string" }])),
  },
});
for (const name of Object.keys(options)) if (values[name] !== undefined) options[name] = Number(values[name]);
if (options.rounds > options.days) throw new Error("a round takes a day: --rounds is at most --days");

const dist = new URL("../dist/", import.meta.url);
const { createPostgresStore, startEmbedded } = await import(new URL("store/postgres/index.js", dist));
const { createMakegood, topic } = await import(new URL("index.js", dist));

const DAY_MS = 86_400_000;
const schema = "retention";
const root = mkdtempSync(join(tmpdir(), "makegood-retention-"));
chmodSync(root, 0o755);
const server = await startEmbedded({ dataDir: join(root, "data") });
const work = topic("bench/work", { sink: () => {} });
const store = createPostgresStore({ url: server.url, schema });
const mg = await createMakegood({ store, topics: [work], log: "silent", recovery: false });
const client = new pg.Client({ connectionString: server.url });
await client.connect();
await client.query(`set search_path = "${schema}"`);

const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
/** The oldest first; the youngest is past the default of seven days. */
const days = Array.from({ length: options.days }, (_, i) => today - (options.days - i + 8) * DAY_MS);
const perDay = Math.round(options.rows / 2 / options.days);

async function fillDay(fromMs) {
  await client.query("set synchronous_commit = off");
  await client.query(`create temp table filled as select (lpad(to_hex(${fromMs} + i * ${DAY_MS - 1} / ${perDay}), 12, '0') || '7' || lpad(to_hex(i % 4096), 3, '0') || '8' || substr(md5(i::text), 1, 15))::uuid as id,
    to_timestamp((${fromMs} + i * ${DAY_MS - 1} / ${perDay}) / 1000.0) as at, i from generate_series(0::bigint, ${perDay - 1}) i`);
  await client.query(`insert into message (id, created_at, lane_id, payload) select id, at, (select min(l.id) from lane l join topic t on t.id = l.topic_id where t.name = 'bench/work'),
    '{"order":' || i || ',"text":"' || repeat(md5(i::text), 6) || '"}' from filled`);
  await client.query("insert into attempt (message_id, lease_id, n, outcome, at) select id, -1, 1, 1, at from filled");
  await client.query("drop table filled; reset synchronous_commit");
}

const seconds = (ms) => `${(ms / 1_000).toFixed(1)} s`;
const began = performance.now();
await mg.enqueue(work, {});
// Room for these days, made as it would have been then.
await store.prune({ keptMs: 36_500 * DAY_MS, limit: 1, now: new Date(days[0]) });
await store.prune({ keptMs: 36_500 * DAY_MS, limit: 1, now: new Date(days.at(-1)) });
for (const day of days) await fillDay(day);
await client.query("vacuum analyze");
console.log(
  `${options.rows} rows in ${options.days} days were made in ${seconds(performance.now() - began)}; load ${loadavg()[0].toFixed(1)}`,
);
const counting = performance.now();
do await store.conservation.pass({ reach: "slice", budgetMs: 2_000 });
while ((await client.query("select phase from conservation")).rows[0].phase !== 2);
console.log(`counted in within ${seconds(performance.now() - counting)}`);

async function drain() {
  for (let n = 0; n < options.drain; n += 1_000) {
    await mg.enqueueMany(
      "bench/work",
      Array.from({ length: 1_000 }, (_, i) => ({ payload: { order: n + i, text: "x".repeat(200) } })),
    );
  }
  const from = performance.now();
  const worker = mg.work({ maintenance: false });
  const left = () => client.query("select 1 from ready limit 1");
  while ((await left()).rows.length > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  await worker.stop();
  return options.drain / ((performance.now() - from) / 1_000);
}

/** One more day leaves, by a process's own connections. */
async function retire(day) {
  const other = createPostgresStore({ url: server.url, schema });
  const keeper = await createMakegood({
    store: other,
    topics: [work],
    log: "silent",
    recovery: false,
    keptMs: Date.now() - day - DAY_MS - 1,
    archiveClasses: values.archive ? ["delivered", "dead"] : ["dead"],
  });
  const from = performance.now();
  const { counts, error } = await keeper.jobs.run("prune-settled");
  const ms = performance.now() - from;
  await keeper.close();
  if (error !== null || counts.deleted < perDay) throw new Error(`retention: ${error ?? `${counts.deleted} of ${perDay} went`}`);
  return ms;
}

await drain();
const ratios = [];
for (let round = 0; round < options.rounds; round++) {
  const alone = await drain();
  let over = false;
  const leaving = retire(days[round]).finally(() => (over = true));
  const beside = await drain();
  const share = over ? ", and was over before the drain" : "";
  const ms = await leaving;
  ratios.push(beside / alone);
  console.log(
    `round ${round + 1}: alone ${Math.round(alone)}/s, beside retention ${Math.round(beside)}/s, ratio ${(beside / alone).toFixed(2)}; ${perDay} messages left in ${seconds(ms)}${share}`,
  );
}
console.log(
  `ratio: median ${median(ratios).toFixed(2)} [${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}]; load ${loadavg()[0].toFixed(1)}`,
);
await store.conservation.pass({ reach: "whole" });
const { state, reason, divergencesTotal } = await store.conservation.conclude({});
console.log(`conservation: ${state}${reason ? `, ${reason}` : ""}, ${divergencesTotal} divergences`);
await client.end();
await mg.close();
await server.close();
rmSync(root, { recursive: true, force: true });
