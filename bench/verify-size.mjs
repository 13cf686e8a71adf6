// What size costs conservation: a million live messages and 50 million in sealed hours, with traffic beside it. Prints what each minute's pass
// takes of the server (at most 200 ms for the rolling comparison), how many passes a whole round takes (ten), `makegood verify` as a whole, and
// which tables were read from end to end. A minute's traffic is made between two passes, as fast as it goes.
//   npm run bench:verify-size [-- --live 1000000 --sealed 50000000 --passes 30 --traffic 6000 --scattered 600]
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import pg from "pg";
import { fillLive, fillSealed } from "./lib/fill-conservation.mjs";

const options = {
  live: 1_000_000,
  sealed: 50_000_000,
  topics: 20,
  tenants: 5,
  hours: 720,
  passes: 30,
  traffic: 6_000,
  scattered: 600,
};
const { values } = parseArgs({ options: Object.fromEntries(Object.keys(options).map((name) => [name, { type: "string" }])) });
for (const name of Object.keys(values)) options[name] = Number(values[name]);

const dist = new URL("../dist/", import.meta.url);
const { createPostgresStore, startEmbedded } = await import(new URL("store/postgres/index.js", dist));
const { createMakegood, topic } = await import(new URL("index.js", dist));
const { headOf } = await import(new URL("store/shared/sums.js", dist));

const root = mkdtempSync(join(tmpdir(), "makegood-verify-size-"));
chmodSync(root, 0o755);
const server = await startEmbedded({ dataDir: join(root, "data") });
const schema = "size";
const topics = Array.from({ length: options.topics }, (_, i) =>
  topic(`shop/topic${i}`, { sink: () => {}, moneyField: i % 2 === 0 ? "amount_micro" : undefined }),
);
const store = createPostgresStore({ url: server.url, schema });
const mg = await createMakegood({ store, topics, log: "silent" });
// Connections of its own, so that what passes take of the server can be told from everything else.
const verifying = createPostgresStore({
  url: `${server.url}${server.url.includes("?") ? "&" : "?"}application_name=verifying`,
  schema,
});
await verifying.open();
const { conservation } = verifying;
const client = new pg.Client({ connectionString: server.url });
await client.connect();
await client.query(`set search_path = "${schema}"`);

/** What the server's processes of the passes have worked, in ms. */
async function worked() {
  const { rows } = await client.query("select pid from pg_stat_activity where application_name = 'verifying'");
  return rows.reduce((sum, { pid }) => sum + Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6, 0);
}
async function measured(work) {
  const [before, from] = [await worked(), performance.now()];
  const value = await work();
  return { value, ms: performance.now() - from, cpuMs: (await worked()) - before };
}
const told = (name, { ms, cpuMs }) =>
  console.log(`${name.padEnd(44)}${ms.toFixed(0).padStart(8)} ms${cpuMs.toFixed(0).padStart(8)} ms of the server's CPU`);
const reads = async () =>
  new Map(
    (
      await client.query(
        "select relname, seq_scan::int as n, seq_tup_read::bigint::float8 as rows from pg_stat_user_tables where schemaname = $1",
        [schema],
      )
    ).rows.map(({ relname, n, rows }) => [relname, { n, rows }]),
  );

console.log(
  `load ${loadavg()
    .map((n) => n.toFixed(1))
    .join(" ")}`,
);
await conservation.pass({ reach: "whole" });
const filled = await measured(() => fillSealed(client, schema, headOf, { ...options, topics }));
told(`filled ${filled.value.messages} in ${filled.value.buckets} sealed hours`, filled);
told(`filled ${options.live} live`, await measured(() => fillLive(client, schema, options)));
let passes = 0;
const counted = await measured(async () => {
  do {
    await conservation.pass({ reach: "slice", budgetMs: 200 });
    passes++;
  } while ((await client.query("select phase from conservation")).rows[0].phase !== 2);
});
told(`counted in, by ${passes} passes`, counted);
await client.query("vacuum analyze conservation_open");
told("compared once, whole", await measured(() => conservation.pass({ reach: "whole" })));
await conservation.conclude({});

const worker = mg.work({ maintenance: false });
async function minute() {
  await client.query(
    `with r as materialized (select (lpad(to_hex(($1::bigint + random() * 72000000)::bigint), 12, '0') || repeat('0', 20))::uuid as id from generate_series(1, $2::int)),
    d as (delete from ready where id in (select x.id from r cross join lateral (select id from ready where ready.id > r.id and due > now() order by id limit 1) x) returning *)
    insert into ready (due, id, lane_id, bytes) select statement_timestamp(), id, lane_id, bytes from d`,
    [Date.now() - 20 * 3_600_000, options.scattered],
  );
  for (let i = 0; i < options.traffic; i += 500) {
    const some = topics[(i / 500) % topics.length];
    await Promise.all(
      Array.from({ length: 500 }, (_, n) =>
        mg.enqueue(some, { amount_micro: n, text: "x".repeat(200) }, { tenantId: `tenant-${(n % options.tenants) + 1}` }),
      ),
    );
  }
  const waiting = () => client.query("select 1 from ready where due <= now() limit 1");
  while ((await waiting()).rows.length > 0) await new Promise((resolve) => setTimeout(resolve, 50));
}

const before = await reads();
const taken = [];
const rounds = [];
for (let i = 0, since = 0; i < options.passes; i++) {
  await minute();
  const rolled = (await client.query("select rolled_at from conservation")).rows[0].rolled_at.getTime();
  const pass = await measured(() => conservation.pass({ reach: "slice", budgetMs: 200 }));
  const concluded = await measured(() => conservation.conclude({}));
  taken.push({ pass, concluded });
  since++;
  const now = (await client.query("select rolled_at from conservation")).rows[0].rolled_at.getTime();
  if (now !== rolled) {
    rounds.push(since);
    since = 0;
  }
  const { state, reason, divergencesTotal } = concluded.value;
  if (state !== "whole") console.log(`pass ${i}: ${state}, ${reason}, ${divergencesTotal}`);
}
const at = (share, of) => {
  const sorted = taken.map(of).sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
};
const line = (name, of) =>
  console.log(`${name.padEnd(44)}p50 ${at(0.5, of).toFixed(0)}, p95 ${at(0.95, of).toFixed(0)}, most ${at(1, of).toFixed(0)} ms`);
line("a minute's pass", ({ pass }) => pass.ms);
line("  of it the server's CPU", ({ pass }) => pass.cpuMs);
line("its conclusion", ({ concluded }) => concluded.ms);
line("  of it the server's CPU", ({ concluded }) => concluded.cpuMs);
console.log(`passes for a whole round: ${rounds.join(" ") || `more than ${options.passes}`}`);
for (const [name, { n, rows }] of await reads()) {
  const past = before.get(name) ?? { n: 0, rows: 0 };
  if (rows - past.rows > 10_000)
    console.log(
      `read from end to end: ${name}, ${n - past.n} times, ${Math.round((rows - past.rows) / Math.max(1, n - past.n))} rows each`,
    );
}
told("whole", await measured(() => conservation.pass({ reach: "whole" })));
told("full", await measured(() => conservation.pass({ reach: "full" })));
await worker.stop();
const from = performance.now();
const command = spawn(process.execPath, [fileURLToPath(new URL("cli/main.js", dist)), "verify"], {
  env: { ...process.env, DATABASE_URL: server.url, MAKEGOOD_SCHEMA: schema },
  stdio: "inherit",
});
const [code] = await once(command, "exit");
console.log(
  `makegood verify: exit code ${code}, ${((performance.now() - from) / 1000).toFixed(1)} s; load ${loadavg()
    .map((n) => n.toFixed(1))
    .join(" ")}`,
);
await client.end();
await verifying.close();
await mg.close();
await server.close();
rmSync(root, { recursive: true, force: true });
