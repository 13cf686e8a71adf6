/**
 * A process of its own that uses the embedded server, so that a test can kill it. It tells what it does as lines of JSON.
 * Modes: hold (until a line comes in), write (rows until killed), churn (starts and closes again and again).
 */
import { writeSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { dist, mode, dataDir, nativeDir, round = 0, times = 1 } = JSON.parse(process.argv[2]);
const { startEmbedded } = await import(join(dist, "store/postgres/embedded.js"));
const pg = createRequire(join(dist, "index.js"))("pg");

// Written at once: what was told before a SIGKILL must have arrived.
const tell = (fact) => writeSync(1, `${JSON.stringify(fact)}\n`);
const log = (message) => tell({ type: "log", message });
const start = () => startEmbedded({ dataDir, nativeDir, log });

async function connect(server) {
  const client = new pg.Client({ connectionString: server.url });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

async function write(server) {
  const client = await connect(server);
  await client.query("create table if not exists written (id text primary key)");
  for (let n = 0; ; n++) {
    const id = `${round}-${n}`;
    await client.query("insert into written values ($1)", [id]);
    tell({ type: "acked", id });
  }
}

try {
  if (mode === "churn") {
    for (let n = 0; n < times; n++) {
      const server = await start();
      const client = await connect(server);
      await client.query("select 1");
      await client.end();
      await server.close();
    }
    tell({ type: "done" });
  } else {
    const server = await start();
    const { url, port, pid, attached } = server;
    // A Ctrl-C reaches the whole process group; this one wants to finish its work first.
    if (mode === "hold") process.on("SIGINT", () => tell({ type: "interrupted" }));
    tell({ type: "ready", url, port, pid, attached });
    let known = pid;
    setInterval(() => {
      if (server.pid === known) return;
      known = server.pid;
      tell({ type: "moved", pid: known });
    }, 50).unref();
    if (mode === "write") await write(server);
    process.stdin.once("data", async () => {
      tell({ type: "closing", pid: server.pid, port: server.port });
      await server.close();
      tell({ type: "closed" });
      process.exit(0);
    });
  }
} catch (error) {
  tell({ type: "failed", code: error.code, message: error.message, stack: error.stack });
  process.exit(1);
}
