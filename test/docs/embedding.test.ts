/**
 * C8: docs/guide/embedding.md and docs/guide/testing.md, run as they stand with the package's own doors: the service with a database and a receiver, the
 * function that does not stay, and the unit tests. The frameworks' files are run in test/adapters/mount.test.ts.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { rm } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { httpReceiver } from "../sinks/receiver.ts";
import { guideFolder } from "../support/guide-files.ts";
import { databaseUrl, freshSchema, withClient } from "../support/postgres.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const run = promisify(execFile);
const TOKENS = "ann:a-secret-of-many-characters";

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function until<T>(what: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await what().catch(() => undefined);
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe("C8: docs/guide/embedding.md", () => {
  const database = freshSchema();
  const url = (): string => Object.assign(new URL(databaseUrl()), { pathname: `/${database}` }).href;
  let folder: string;
  let service: ChildProcess | undefined;

  beforeAll(async () => {
    folder = await guideFolder("docs/guide/embedding.md", { pg: join(ROOT, "node_modules/pg") });
    await withClient((client) => client.query(`create database ${database}`));
  });

  afterAll(async () => {
    service?.kill("SIGKILL");
    await withClient((client) => client.query(`drop database if exists ${database} with (force)`));
    await rm(folder, { recursive: true, force: true });
  });

  it("the service delivers what was committed, answers its API, says nothing while all is well, and ends in order", async () => {
    const client = new pg.Client({ connectionString: url() });
    await client.connect();
    await client.query("create table charges (id text primary key)");
    await client.end();
    await using ledger = await httpReceiver();
    const address = `http://127.0.0.1:${await freePort()}`;
    const env = {
      ...process.env,
      DATABASE_URL: url(),
      LEDGER_URL: ledger.url,
      MAKEGOOD_TOKENS: TOKENS,
      PORT: new URL(address).port,
    };
    service = spawn(process.execPath, ["service.mjs"], { cwd: folder, env, stdio: ["ignore", "inherit", "pipe"] });
    let said = "";
    service.stderr?.on("data", (chunk) => {
      said += chunk;
    });
    await until(async () => ((await fetch(`${address}/makegood/readyz`)).status === 200 ? true : undefined));
    const charge = (order: string) => fetch(address, { method: "POST", body: JSON.stringify({ order }) });
    expect([(await charge("o-1")).status, (await charge("o-1")).status, (await charge("o-2")).status]).toEqual([202, 409, 202]);
    await until(async () => (ledger.seen.length === 2 ? true : undefined));
    expect(ledger.seen.map(({ body }) => body.toString()).sort()).toEqual(['{"order":"o-1"}', '{"order":"o-2"}']);
    const headers = { authorization: "Bearer a-secret-of-many-characters" };
    const listed = await fetch(`${address}/makegood/api/v1/messages?topic=billing/charged`, { headers });
    expect(((await listed.json()) as { data: object[] }).data).toHaveLength(2);
    expect((await fetch(`${address}/makegood/api/v1/messages`)).status).toBe(401);
    service.kill("SIGTERM");
    expect(await new Promise((resolve) => service?.once("exit", resolve))).toBe(0);
    expect(said).toBe("");
  });

  it("the function does what is due and says when to come again", async () => {
    const program = `import { handler } from "./function.mjs"; import { mg, orders } from "./makegood.mjs";
      await mg.enqueue(orders, { n: 1 }); await mg.enqueue(orders, { n: 2 }, { delayMs: 60_000 });
      console.log(JSON.stringify(await handler())); await mg.close();`;
    const { stdout, stderr } = await run(process.execPath, ["--input-type=module", "-e", program], { cwd: folder });
    const [payload = "", answer = ""] = stdout.split("\n");
    expect([payload, stderr]).toEqual(["{ n: 1 }", ""]);
    const told = JSON.parse(answer) as { againInMs: number };
    expect(told).toMatchObject({ attempts: 1, delivered: 1, dead: 0, failed: false });
    expect(told.againInMs).toBeGreaterThan(50_000);
  });
});

it("C8: docs/guide/testing.md: the unit tests of the guide pass, and fail when the code is wrong", async () => {
  const folder = await guideFolder("docs/guide/testing.md");
  try {
    const { stdout } = await run(process.execPath, ["--test", "--test-reporter=tap", "orders.test.mjs"], { cwd: folder });
    expect(stdout).toMatch(/^# pass 3$/m);
    const wrong =
      "const text = await readFile('orders.mjs', 'utf8'); await writeFile('orders.mjs', text.replace('tx: client, ', ''));";
    await run(
      process.execPath,
      ["--input-type=module", "-e", `import { readFile, writeFile } from "node:fs/promises"; ${wrong}`],
      { cwd: folder },
    );
    const failed = run(process.execPath, ["--test", "--test-reporter=tap", "orders.test.mjs"], { cwd: folder });
    await expect(failed).rejects.toMatchObject({ stdout: expect.stringMatching(/^# fail 1$/m) });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
