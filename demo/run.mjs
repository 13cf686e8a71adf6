// A flaky receiver, a server that is killed with kill -9 in the middle of its work, and what is left afterwards: nothing lost.
// It uses only what a user has: the CLI, the HTTP API and a receiver of one's own. Everything lives in a temporary directory.
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const MESSAGES = 300;
const KILLS = 2;
const cli = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const say = (text) => console.log(text);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Fails one request in three, and acts once per Idempotency-Key, as a good receiver does. */
function startReceiver() {
  const seen = { requests: 0, refused: 0, repeats: 0, effects: new Map() };
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      seen.requests++;
      if (Math.random() < 1 / 3) {
        seen.refused++;
        response.writeHead(503).end();
        return;
      }
      const key = request.headers["idempotency-key"];
      if (seen.effects.has(key)) seen.repeats++;
      else seen.effects.set(key, body);
      response.writeHead(200).end();
    });
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () =>
      resolve({ seen, url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() }),
    );
  });
}

async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

/** `makegood serve`, ready to accept. */
async function startServe(environment, base) {
  const child = spawn(process.execPath, [cli, "serve"], { env: environment, stdio: ["ignore", "ignore", "inherit"] });
  for (let i = 0; i < 300; i++) {
    if (child.exitCode !== null) throw new Error(`serve ended with ${child.exitCode}`);
    if (
      await fetch(`${base}/readyz`).then(
        (r) => r.ok,
        () => false,
      )
    )
      return child;
    await sleep(100);
  }
  throw new Error("serve did not become ready within 30 s");
}

const end = (child, signal) =>
  new Promise((resolve) => {
    child.once("exit", resolve);
    child.kill(signal);
  });

const home = mkdtempSync(join(tmpdir(), "makegood-demo-"));
// As root the embedded PostgreSQL runs under another user, who must be able to enter.
chmodSync(home, 0o755);
const receiver = await startReceiver();
const port = await freePort();
const base = `http://127.0.0.1:${port}`;
const environment = { ...process.env, MAKEGOOD_PORT: String(port), MAKEGOOD_DATA_DIR: join(home, "data"), MAKEGOOD_LOG: "json" };
delete environment.DATABASE_URL;

say("Starting makegood serve on an embedded PostgreSQL …");
let serve = await startServe(environment, base);
const put = await fetch(`${base}/api/v1/topics/demo/orders`, {
  method: "PUT",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({
    sink: { kind: "http", url: receiver.url },
    retry: { policy: "exponential", attempts_max: 20, base_ms: 100, max_ms: 1000 },
    lease_ms: 3000,
    concurrency: 10,
  }),
});
if (!put.ok) throw new Error(`the topic was refused: ${await put.text()}`);

say(`The receiver fails one request in three. Enqueueing ${MESSAGES} messages, with kill -9 of the server ${KILLS} times …`);
const accepted = new Map();
let kills = 0;
for (let i = 0; i < MESSAGES; i++) {
  const key = `order-${i}`;
  const body = JSON.stringify({ topic: "demo/orders", key, payload: { order: i } });
  if (kills < KILLS && i === Math.floor(((kills + 1) * MESSAGES) / (KILLS + 1))) {
    kills++;
    await end(serve, "SIGKILL");
    say(`  kill -9 after ${accepted.size} accepted, ${receiver.seen.effects.size} delivered so far`);
    serve = await startServe(environment, base);
  }
  const answer = await fetch(`${base}/api/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  if (!answer.ok) throw new Error(`message ${i} was refused: ${await answer.text()}`);
  accepted.set(key, (await answer.json()).id);
}
await end(serve, "SIGKILL");
say("  kill -9 once more, with everything accepted");
serve = await startServe(environment, base);
for (let i = 0; i < 400 && receiver.seen.effects.size < accepted.size; i++) await sleep(100);

const lost = [...accepted.keys()].filter((key) => !receiver.seen.effects.has(key));
say(`
  accepted            ${accepted.size}
  requests received   ${receiver.seen.requests}
  of them refused     ${receiver.seen.refused} (503, tried again)
  of them repeats     ${receiver.seen.repeats} (same Idempotency-Key: no second effect)
  effects             ${receiver.seen.effects.size}
  lost                ${lost.length}`);
await end(serve, "SIGTERM");
receiver.close();
rmSync(home, { recursive: true, force: true });
process.exit(lost.length === 0 && receiver.seen.effects.size === accepted.size ? 0 : 1);
