// What size does: a million messages waiting in 1,000 topics of 50 tenants each, 50,000 lanes, served by one `makegood serve` over HTTP. Prints
// its memory, how long /metrics takes and its rate, against the rate of one topic in the same run (issue: at most 300 MB, at most 300 ms, at
// least half). Then what a page and an enqueue cost while the store grows.
//   npm run bench:scale [-- --messages 1000000 --topics 1000 --tenants 50 --seconds 20]
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import pg from "pg";
import { fill } from "./lib/fill.mjs";

const options = { messages: 1_000_000, topics: 1_000, tenants: 50, seconds: 20 };
const { values } = parseArgs({ options: Object.fromEntries(Object.keys(options).map((name) => [name, { type: "string" }])) });
for (const name of Object.keys(values)) options[name] = Number(values[name]);

const dist = new URL("../dist/", import.meta.url);
const { createPostgresStore, startEmbedded } = await import(new URL("store/postgres/index.js", dist));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const say = (text) => console.log(text);

const received = { count: 0 };
const receiver = createServer((request, response) => {
  request.resume();
  request.on("end", () => {
    received.count++;
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
});
receiver.keepAliveTimeout = 60_000;
await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve));
const sinkUrl = `http://127.0.0.1:${receiver.address().port}/`;

const root = mkdtempSync(join(tmpdir(), "makegood-scale-"));
chmodSync(root, 0o755);
const server = await startEmbedded({ dataDir: join(root, "data") });

async function build(schema, topics, tenants, messages) {
  const store = createPostgresStore({ url: server.url, schema });
  await store.open();
  for (let i = 0; i < topics; i++) {
    const rest = {
      retry: { policy: "exponential" },
      schemaVersion: null,
      leaseMs: 30_000,
      concurrency: null,
      tenantConcurrency: null,
    };
    await store.topics.put({ name: `scale/t${i}`, sink: { kind: "http", url: sinkUrl }, ordering: "none", ...rest }, "api");
  }
  await store.close();
  await grow(schema, tenants, messages);
}

async function grow(schema, tenants, count, more = {}) {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await fill(client, schema, { count, tenants, fromMs: Date.now() - 3_600_000, ...more });
  await client.end();
}

/** `makegood serve` on a schema, and how it does for some seconds. */
async function serve(schema) {
  const port = await freePort();
  const env = {
    ...process.env,
    DATABASE_URL: server.url,
    MAKEGOOD_SCHEMA: schema,
    MAKEGOOD_PORT: String(port),
    MAKEGOOD_LOG_LEVEL: "error",
  };
  const child = spawn(process.execPath, [fileURLToPath(new URL("cli/main.js", dist)), "serve"], {
    env: { ...env, MAKEGOOD_SINK_ALLOW: "127.0.0.0/8" },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const before = received.count;
  while (received.count - before < 100) {
    if (child.exitCode !== null) throw new Error(`serve ended with ${child.exitCode}`);
    await sleep(50);
  }
  const metrics = [];
  let rssMb = 0;
  const [from, fromMs] = [received.count, performance.now()];
  while (performance.now() - fromMs < options.seconds * 1_000) {
    await sleep(1_000);
    const askedMs = performance.now();
    await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    metrics.push(performance.now() - askedMs);
    rssMb = Math.max(rssMb, Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1_024);
  }
  const perSecond = ((received.count - from) * 1_000) / (performance.now() - fromMs);
  child.kill("SIGTERM");
  await new Promise((resolve) => child.once("exit", resolve));
  metrics.sort((a, b) => a - b);
  return { perSecond, rssMb, metricsMs: metrics[Math.floor(metrics.length / 2)], metricsMostMs: metrics.at(-1) };
}

async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

const line = (name, r) =>
  say(
    `${name}: ${r.perSecond.toFixed(0)}/s, ${r.rssMb.toFixed(0)} MB at most, /metrics ${r.metricsMs.toFixed(0)} ms (${r.metricsMostMs.toFixed(0)} at most)`,
  );

try {
  await build("one", 1, 1, Math.min(options.messages, 200_000));
  await build("many", options.topics, options.tenants, options.messages);
  const one = await serve("one");
  line("one topic, one tenant", one);
  const many = await serve("many");
  line(`${options.topics} topics of ${options.tenants} tenants, ${options.messages} messages`, many);
  say(`rate against one topic in this run: ${(many.perSecond / one.perSecond).toFixed(2)}`);
  await growth();
} finally {
  receiver.close();
  await server.close();
  rmSync(root, { recursive: true, force: true });
}

/** A page of each kind and an enqueue, at a thousand messages and at every ten times more. */
async function growth() {
  await build("grown", 20, 50, 1_000);
  const store = createPostgresStore({ url: server.url, schema: "grown" });
  await store.open();
  for (let have = 1_000; ; have *= 10) {
    const ms = {};
    for (const [name, filter] of Object.entries({
      all: {},
      tenant: { tenantId: "tenant-7" },
      delivered: { topic: "scale/t3", status: "delivered" },
      dead: { status: "dead" },
    })) {
      const startMs = performance.now();
      for (let i = 0; i < 5; i++) await store.list({ ...filter, limit: 50 });
      ms[name] = (performance.now() - startMs) / 5;
    }
    const words = Object.entries(ms).map(([name, took]) => `${name} ${took.toFixed(1)}`);
    say(`a page at ${have} messages, ms: ${words.join(", ")}`);
    if (have * 10 > options.messages) break;
    await grow("grown", 50, have * 9, { delivered: 80, dead: 5, fromMs: Date.now() - 3_600_000 + have });
  }
  await store.close();
}
