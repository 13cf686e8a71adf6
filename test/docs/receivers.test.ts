/**
 * The receiver of docs/guide/receivers.md, run as it stands, with the package's own doors and a database: what the guide promises is what
 * happens to what our webhook sink sends. The README shows the same code.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { webhookSink } from "../../src/sink/webhook.ts";
import { generateSecret } from "../../src/webhook/index.ts";
import { loopbackGuard, send } from "../sinks/receiver.ts";
import { freePort } from "../support/free-port.ts";
import { filesIn, guideFolder } from "../support/guide-files.ts";
import { databaseUrl, freshSchema, withClient } from "../support/postgres.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const database = freshSchema();
const url = (): string => Object.assign(new URL(databaseUrl()), { pathname: `/${database}` }).href;
const [CURRENT, NEXT] = [generateSecret(), generateSecret()];
let folder: string;
let receiver: ChildProcess;
let address: string;

const environment = (more: Record<string, string> = {}) => ({ ...process.env, DATABASE_URL: url(), ...more });

/** It listens when it answers anything; before that its table is being made. */
async function answers(): Promise<void> {
  for (;;) {
    if (receiver.exitCode !== null) throw new Error(`the receiver ended with ${receiver.exitCode}`);
    const response = await fetch(address, { method: "POST", body: "{}" }).catch(() => undefined);
    if (response !== undefined) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

beforeAll(async () => {
  folder = await guideFolder("docs/guide/receivers.md", { pg: join(ROOT, "node_modules/pg") });
  await withClient((client) => client.query(`create database ${database}`));
  await inDatabase("create table ledger (charge text not null)");
  const port = await freePort();
  address = `http://127.0.0.1:${port}/`;
  const env = environment({ PORT: String(port), WEBHOOK_SECRETS: `${NEXT} ${CURRENT}` });
  receiver = spawn(process.execPath, ["receiver.mjs"], { cwd: folder, env, stdio: "inherit" });
  await answers();
});

afterAll(async () => {
  receiver?.kill("SIGKILL");
  await withClient((client) => client.query(`drop database if exists ${database} with (force)`));
  await rm(folder, { recursive: true, force: true });
});

async function inDatabase(text: string): Promise<Record<string, unknown>[]> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: url() });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

it("the README shows the receiver of the guide", async () => {
  const guide = await filesIn("docs/guide/receivers.md");
  expect([...guide.keys()]).toEqual(["receive.mjs", "receiver.mjs", "prune.mjs"]);
  expect((await filesIn("README.md")).get("receive.mjs")).toBe(guide.get("receive.mjs"));
});

it("books each message once, however often it comes, and nothing that is not genuine", async () => {
  const sink = (secrets: string[]) => webhookSink({ url: address, secrets }, { guard: loopbackGuard });
  const deliver = async (secrets: string[], id: string, attempt = 1) => {
    const one = sink(secrets);
    const { outcome } = await send(one, { id, attempt, payload: JSON.stringify({ charge: id }) });
    await one.close?.();
    return outcome.kind;
  };
  const many = Array.from({ length: 20 }, (_, n) => deliver([CURRENT], "charge-1", n + 1));
  expect(new Set(await Promise.all(many))).toEqual(new Set(["delivered"]));
  // While the secrets are changed: the old one, both, the new one.
  expect(await deliver([CURRENT], "charge-2")).toBe("delivered");
  expect(await deliver([NEXT, CURRENT], "charge-2", 2)).toBe("delivered");
  expect(await deliver([NEXT], "charge-3")).toBe("delivered");
  expect(await deliver([generateSecret()], "charge-4")).toBe("retry");
  expect(await inDatabase("select charge from ledger order by charge")).toEqual(
    [1, 2, 3].map((n) => ({ charge: `charge-${n}` })),
  );
  const bare = await fetch(address, { method: "POST", body: "{}" });
  expect([bare.status, await bare.json()]).toEqual([401, "header_missing"]);
});

it("prunes what is a month old", async () => {
  await inDatabase("update makegood_inbox set at = now() - interval '31 days' where key = 'charge-1'");
  await inDatabase(`insert into makegood_inbox (scope, key, at)
    select '', 'old-' || n, now() - interval '40 days' from generate_series(1, 2500) n`);
  await promisify(execFile)(process.execPath, ["prune.mjs"], { cwd: folder, env: environment() });
  expect(await inDatabase("select key from makegood_inbox order by key")).toEqual([{ key: "charge-2" }, { key: "charge-3" }]);
});
