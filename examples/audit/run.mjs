// An audit producer with a storage outage: the storage service is killed with kill -9 while the producer works on. No operation of the
// producer fails or waits for it, and when the service is back every record is there, once, with the text that was written.
import { tmpdir } from "node:os";
import { resolve } from "node:path";
import { dist, load } from "../package.mjs";
import { atTheEnd, database, prove, run, say, startProcess, until } from "../prove.mjs";

const { createPostgresStore, createConnection } = await load("store/postgres/index.js");
const { createAuditClient } = await load("presets/index.js");

// No write waits for them where connections are refused; a busy machine may need a second for an answer.
const TIMEOUT_MS = 5_000;
const BUDGET_MS = 10_000;

/** `makegood serve` as a process of its own: the audit endpoints, the worker and the tables. */
async function startStorage(databaseUrl, schema, port) {
  const { PATH, HOME } = process.env;
  const env = {
    PATH,
    HOME,
    DATABASE_URL: databaseUrl,
    MAKEGOOD_SCHEMA: schema,
    MAKEGOOD_PORT: String(port),
    MAKEGOOD_LOG: "json",
  };
  const { said, end } = startProcess([resolve(dist, "cli/main.js"), "serve"], env, { cwd: tmpdir() });
  const { url } = await said(({ message }) => message === "listening");
  return { url, port: Number(new URL(url).port), kill: end };
}

const TYPES = [
  ["orchestration", { phase: "analysing" }],
  ["signal-processing", { fingerprint: "f-7" }],
  ["ai-decisions", { fingerprint: "f-7", confidence: 0.87, model: "m-1" }],
  ["executions", { workflow: "restart-pod" }],
  ["notifications", { channel: "slack" }],
  ["effectiveness", { score: 0.93 }],
];

async function main() {
  const databaseUrl = await database();
  const schemas = [`audit_storage_${process.pid}`, `audit_producer_${process.pid}`];
  const sql = createConnection({ url: databaseUrl });
  await sql.open();
  atTheEnd(async () => {
    for (const schema of schemas) await sql.rows("clean up", `drop schema if exists "${schema}" cascade`, []);
    await sql.close();
  });
  const stored = async () =>
    new Map(await sql.rows("read", `select event_id, payload from "${schemas[0]}".audit_record`, [], { reads: true }));
  let storage = await startStorage(databaseUrl, schemas[0], 0);
  const store = createPostgresStore({ url: databaseUrl, schema: schemas[1] });
  const audit = createAuditClient({
    url: storage.url,
    actor: "example-producer",
    // What waits survives a crash of the producer, too. The store stays ours: the code that made it closes it.
    store,
    timeoutMs: TIMEOUT_MS,
    budgetMs: BUDGET_MS,
    // Half seconds instead of the policy's minutes and hours, so that the example ends soon.
    retry: { policy: "audit", tableMs: [500, 500, 500, 500, 500, 500] },
    pollMs: 100,
  });
  atTheEnd(async () => {
    await audit.close({ drainMs: 1_000 });
    await store.close();
  });
  await until("the producer's own store is open", () => audit.makegood());

  const written = new Map();
  let slowestMs = 0;
  async function write(type, eventId, data) {
    const record = {
      event_id: eventId,
      correlation_id: `rr-${eventId.split("-")[1]}`,
      occurred_at: new Date().toISOString(),
      actor: "example-producer",
      resource: "pod/checkout",
      outcome: "success",
      data,
      // Members that nobody has registered are kept.
      cluster: "eu-1",
    };
    const startMs = performance.now();
    const result = await audit.write(type, record);
    slowestMs = Math.max(slowestMs, performance.now() - startMs);
    if (result.kind !== "quarantined") written.set(eventId, JSON.stringify(record));
    return result;
  }

  say("A producer writes audit records to a storage service that is killed; the producer never waits for it and loses nothing.");
  say("1. the storage service is there");
  const first = [];
  for (const [type, data] of TYPES) first.push(await write(type, `first-0-${type}`, data));
  prove(
    "a record of each of the six types is stored",
    first.every(({ kind }) => kind === "stored"),
  );
  const again = await audit.write("executions", JSON.parse(written.get("first-0-executions")));
  prove("the same event a second time is no second record", again.kind === "duplicate", again.kind);

  say("2. the storage service is killed with kill -9, and the producer works on");
  await storage.kill("SIGKILL");
  const results = [];
  for (let n = 0; n < 50; n++) {
    const batch = TYPES.map(([type, data]) => write(type, `outage-${n}-${type}`, { ...data, n }));
    results.push(...(await Promise.all(batch)));
  }
  prove(
    "no write threw, and each says that its record waits",
    results.every(({ kind }) => kind === "queued"),
    `${results.length} records`,
  );
  prove(
    "what waits survives more than this process",
    results.every(({ survives }) => survives !== "nothing"),
    results[0].survives,
  );
  prove("no write took longer than its budget", slowestMs < BUDGET_MS + 500, `the slowest took ${Math.round(slowestMs)} ms`);
  const bad = await write("ai_analysis", "bad-0", { confidence: 7 });
  prove(
    "a record that does not fit is quarantined, not lost",
    bad.kind === "quarantined" && (await audit.deadLetters()) === 1,
    bad.error,
  );
  prove("nothing died of the outage", (await audit.pending()) === results.length, `${await audit.pending()} wait`);

  say("3. the storage service is back");
  storage = await startStorage(databaseUrl, schemas[0], storage.port);
  await until("everything is stored", async () => (await stored()).size === written.size);
  const texts = await stored();
  prove("every record is there, once", texts.size === written.size, `${texts.size} of ${written.size}`);
  prove(
    "each with the text that was written",
    [...written].every(([id, text]) => texts.get(id) === text),
  );
  await until("nothing waits", async () => (await audit.pending()) === 0);
  prove("nothing waits any more, and only the bad one is left for a person", (await audit.deadLetters()) === 1);
}

await run(main);
