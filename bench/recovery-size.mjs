// What size costs the people who look: 100,000 groups and 5 million occurrences, read through the engine as the server and the command line
// read it. Prints p50 and p95 of each list, of the numbers and of a preview (issue: at most 50 ms at p95), and what of it reads a table whole.
//   npm run bench:recovery-size [-- --groups 100000 --occurrences 5000000 --reads 200]
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import pg from "pg";
import { fillRecovery, settleRecovery } from "./lib/fill-recovery.mjs";

// A database that an earlier run with KEEP=1 has filled and left running.
const again = process.env.REUSE;
const options = { groups: 100_000, occurrences: 5_000_000, items: 500_000, redrives: 5_000, reads: 200 };
const { values } = parseArgs({ options: Object.fromEntries(Object.keys(options).map((name) => [name, { type: "string" }])) });
for (const name of Object.keys(values)) options[name] = Number(values[name]);

const dist = new URL("../dist/", import.meta.url);
const { createPostgresStore, startEmbedded } = await import(new URL("store/postgres/index.js", dist));
const { createMakegood, topic, reject } = await import(new URL("index.js", dist));
const { createRecords } = await import(new URL("recovery/records.js", dist));
const { homeOf } = await import(new URL("store/home.js", dist));
const { blastRadiusOf } = await import(new URL("recovery/candidates/found.js", dist));

const root = mkdtempSync(join(tmpdir(), "makegood-size-"));
chmodSync(root, 0o755);
const server = again ? { url: again, close: async () => {} } : await startEmbedded({ dataDir: join(root, "data") });
const schema = "size";
const store = createPostgresStore({ url: server.url, schema });
const topics = Array.from({ length: 20 }, (_, i) => topic(`shop/topic${i}`, { sink: () => reject("refused") }));
const mg = await createMakegood({ store, topics });
const records = createRecords(homeOf(mg.store));
const client = new pg.Client({ connectionString: server.url });
await client.connect();

const seconds = async (name, work) => {
  const from = performance.now();
  const result = await work();
  console.log(`${name}: ${((performance.now() - from) / 1000).toFixed(1)} s`);
  return result;
};
const redriveId = "ffffffff-0000-7000-8000-000000000001";
if (!again) await seconds("filled", () => fillRecovery(client, schema, options));
await seconds("counts added up", () => records.addUp());
if (!again) await seconds("vacuum", () => settleRecovery(client, schema));

let seed = 1;
const any = (n) => {
  seed = (seed * 48_271) % 2_147_483_647;
  return seed % n;
};
const { rows } = await client.query(`select min(id) as first from "${schema}".recovery_group`);
const first = Number(rows[0].first);
const anyGroup = () => first + any(options.groups);
const { recovery } = mg;
const limit = 50;
const ago = (hours) => new Date(Date.now() - hours * 3_600_000);
const second = async (filter) => recovery.groups({ ...filter, cursor: (await recovery.groups(filter)).nextCursor });
const READS = {
  groups: () => recovery.groups({ limit }),
  "groups, the next page": () => second({ limit }),
  "groups --open": () => recovery.groups({ limit, open: true }),
  "groups by size": () => recovery.groups({ limit, order: "size" }),
  "groups --open by size": () => recovery.groups({ limit, open: true, order: "size" }),
  "groups of an hour, days ago": () => recovery.groups({ limit, since: ago(100), until: ago(99) }),
  "groups of an hour, by size": () => recovery.groups({ limit, order: "size", since: ago(100), until: ago(99) }),
  "groups of a topic and code": () => recovery.groups({ limit, topic: `shop/topic${any(20)}`, errorCode: `CODE_${any(40)}` }),
  "groups of a code": () => recovery.groups({ limit, errorCode: `CODE_${any(40)}` }),
  "groups of no topic": () => recovery.groups({ limit, topic: "shop/none" }),
  "groups of a tenant": () => recovery.groups({ limit, tenantId: `tenant-${any(50)}` }),
  "groups of no tenant": () => recovery.groups({ limit, tenantId: "nobody" }),
  group: () => recovery.group(anyGroup()),
  "the largest group": () => recovery.group(first),
  occurrences: () => recovery.occurrences(anyGroup(), { limit }),
  "occurrences of the largest": () => recovery.occurrences(first, { limit }),
  "open occurrences": () => recovery.occurrences(anyGroup(), { limit, open: true }),
  candidates: () => recovery.candidates({ limit }),
  "candidates, pending": () => recovery.candidates({ limit, decision: "pending" }),
  "candidates, rejected": () => recovery.candidates({ limit, decision: "rejected" }),
  "candidates, failed evaluation": () => recovery.candidates({ limit, evaluationStatus: "failed" }),
  "candidates, executing": () => recovery.candidates({ limit, executionStatus: "executing" }),
  "candidates of an action": () => recovery.candidates({ limit, action: "rollback" }),
  candidate: async () => {
    const found = await records.candidateOf(anyGroup());
    return recovery.candidate(found.candidateId, { provenance: true });
  },
  "preview of a group": () => blastRadiusOf(records, anyGroup()),
  "preview of the largest": () => blastRadiusOf(records, first + ((10 - (first % 10)) % 10)),
  stats: () => recovery.stats(),
  redrives: () => recovery.redrives({ limit }),
  "redrives, running": () => recovery.redrives({ limit, status: "running" }),
  "redrive items": () => recovery.redriveItems(redriveId, { limit }),
  "redrive items, failed": () => recovery.redriveItems(redriveId, { limit, state: "failed" }),
  "redrive items, skipped": () => recovery.redriveItems(redriveId, { limit, state: "skipped" }),
  mv_top_pending: () => client.query(`select * from "${schema}".mv_top_pending order by confidence desc nulls last limit 50`),
};

console.log(`${"".padEnd(32)}${"p50".padStart(9)}${"p95".padStart(9)}`);
for (const [name, read] of Object.entries(READS)) {
  const took = [];
  for (let i = 0; i < options.reads; i++) {
    const from = performance.now();
    await read();
    took.push(performance.now() - from);
  }
  took.sort((a, b) => a - b);
  const at = (share) => took[Math.min(took.length - 1, Math.floor(took.length * share))].toFixed(1).padStart(9);
  console.log(`${name.padEnd(32)}${at(0.5)}${at(0.95)}`);
}
if (process.env.KEEP) {
  console.log(server.url);
  await new Promise((resolve) => process.once("SIGINT", resolve));
}
await client.end();
await mg.close();
await server.close();
rmSync(root, { recursive: true, force: true });
