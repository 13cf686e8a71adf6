/**
 * Runbooks of what a person changes: another store, another schema, another version, other secrets; and back from a backup. Followed by a shell
 * while messages come, and proven by what arrived and by `makegood verify`.
 */
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, expect, it } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { createConnection, migrateUp, startEmbedded } from "../../src/store/postgres/index.ts";
import { KERNEL_SET } from "../../src/store/postgres/migrate.ts";
import { daysAround, ensurePartitions } from "../../src/store/postgres/partitions.ts";
import { definition, newMessage } from "../../src/testing/store-conformance/fixtures.ts";
import { generateSecret, verifyWebhook } from "../../src/webhook/index.ts";
import * as processes from "../cli/support.ts";
import { databaseUrl, dropSchema, freshSchema, openStore } from "../support/postgres.ts";
import { type Arrival, startReceiver } from "../support/receiver.ts";
import { DURABLE, startRedis } from "../support/redis-server.ts";
import type { Program } from "../support/shell.ts";
import { followed } from "./runbook.ts";
import { makeDaemon, openDeadLetters, putTopic, send, shownAs, startDaemon, systemctl, TOPIC } from "./scene.ts";

const { workspace } = processes;
afterAll(processes.removeWorkspaces);

const RETRIED = { attempts_max: 5, base_ms: 50, max_ms: 50 };

it("DF-29, drain and go back: what is due is delivered, the rest moves to PostgreSQL, and nothing is sent twice", async () => {
  const [redis, cwd, schema] = [await startRedis(DURABLE), await workspace(), freshSchema()];
  await using receiver = await startReceiver({ status: 503 });
  const home = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema, MAKEGOOD_RECOVERY: "off" };
  await using makegood = await startDaemon(cwd, { ...home, MAKEGOOD_STORE: "redis", REDIS_URL: redis.url });
  await putTopic(makegood, { sink: { kind: "http", url: receiver.url }, retry: RETRIED });
  for (let amount = 0; amount < 5; amount++) await send(makegood, { amount });
  await send(makegood, { amount: "later" }, { delay_ms: 3_600_000 });
  await expect.poll(() => receiver.arrivals.length).toBeGreaterThan(2);
  // Back again, but for one that it never takes.
  receiver.default(({ body }) => ({ status: body.includes("4") ? 422 : 200 }));

  const printed = await followed("drain-and-rollback", {
    cwd,
    env: { MAKEGOOD_URL: makegood.url, SETTINGS: makegood.file },
    programs: { systemctl: systemctl({ makegood: makegood.service }) },
  });
  expect(printed.Do).toMatch(/2 messages of \d+ topics are in left.ndjson/);
  expect(printed["Over when"]).toMatch(/conservation is whole\n2 accepted = 0 delivered \+ 0 resolved \+ 0 discarded \+ 2 live/);
  expect(makegood.server().mg.store.traits.name).toBe("postgres");
  expect(receiver.effects.size).toBe(4);
  const scrape = await makegood.scrape();
  expect([openDeadLetters(scrape), shownAs(scrape, /^makegood_messages\{topic="shop\/charge",status="pending"/)]).toEqual([1, 1]);
  await makegood.service.stop();
  await redis.stop();
  await dropSchema(schema);
}, 120_000);

/** The schema of an earlier version, and a producer of it that goes on: with its own function in the database. */
async function earlier(url: string, schema: string, receiver: string) {
  const connection = createConnection({ url });
  await connection.open();
  await migrateUp(connection, schema, KERNEL_SET, "recovery-mirror");
  await ensurePartitions(connection, `"${schema}"`, daysAround(Date.now()));
  await connection.close();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const old = JSON.stringify({ ...definition(TOPIC), sink: { kind: "http", url: receiver } });
  await client.query(`insert into "${schema}".topic (name, definition, source) values ($1, $2, 'api')`, [TOPIC, old]);
  let sent = 0;
  return {
    sent: () => sent,
    async send() {
      await client.query(`select "${schema}".enqueue($1, $2)`, [TOPIC, JSON.stringify({ n: sent })]);
      sent++;
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}

it("REC-61, migration: up with what waited before, proven, and back to the schema of the backup", async () => {
  const cwd = await workspace({ prepared: true });
  await using receiver = await startReceiver();
  const dataDir = join(cwd, ".makegood");
  {
    await using server = await startEmbedded({ dataDir });
    await using old = await earlier(server.url, "makegood", receiver.url);
    for (let n = 0; n < 5; n++) await old.send();
  }
  await using makegood = await makeDaemon(cwd, { MAKEGOOD_DATA_DIR: dataDir });
  const printed = await followed("migration", {
    cwd,
    env: { SETTINGS: makegood.file, BACKUP: join(cwd, "before") },
    programs: { systemctl: systemctl({ makegood: makegood.service }) },
  });
  expect(printed.Look).toMatch(/0025 +operations +no/);
  expect(printed.Do).toContain("applied 0027-evidence");
  expect(printed["Over when"]).toMatch(/conservation is whole\n5 accepted/);
  expect(receiver.effects.size).toBe(5);
  expect(printed.Back).toMatch(/restored the backup of .*not proven: its schema is of an earlier version.*0025 +operations +no/s);
}, 120_000);

it("REC-61, upgrade: a producer of the version before goes on, two processes are replaced, and nothing is missing", async () => {
  const [cwd, other, schema] = [await workspace(), await workspace(), freshSchema()];
  await using receiver = await startReceiver();
  await using old = await earlier(databaseUrl(), schema, receiver.url);
  const env = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema };
  await using one = await makeDaemon(cwd, env);
  await using two = await makeDaemon(other, env);
  const stop = new AbortController();
  const producing = (async () => {
    while (!stop.signal.aborted) {
      await old.send();
      await sleep(20);
    }
  })();
  const printed = await followed("upgrade", {
    cwd,
    env: { SETTINGS: one.file, PROCESSES: `makegood-1=${one.url} makegood-2=${two.url}` },
    programs: { systemctl: systemctl({ "makegood-1": one.service, "makegood-2": two.service }) },
  });
  stop.abort();
  await producing;
  expect(printed.Do).toContain("applied 0027-evidence");
  expect(printed["Over when"]).toMatch(/^makegood_info\{version=.*\nmakegood_info\{version=/);
  expect(printed["Over when"]).toContain("conservation is whole");
  await expect.poll(() => receiver.effects.size).toBe(old.sent());
  await Promise.all([one.service.stop(), two.service.stop()]);
  await dropSchema(schema);
}, 120_000);

it("restore and prove: what the backup does not have is named, sent again under its keys, and all is accounted for", async () => {
  const cwd = await workspace({ prepared: true });
  await using receiver = await startReceiver();
  const [dataDir, witness, backup] = [join(cwd, ".makegood"), join(cwd, "witness.ndjson"), join(cwd, "backup")];
  const env = { MAKEGOOD_DATA_DIR: dataDir, MAKEGOOD_WITNESS: witness };
  await using makegood = await startDaemon(cwd, env);
  await putTopic(makegood, { sink: { kind: "http", url: receiver.url }, retry: RETRIED });
  const sent: string[] = [];
  const produce = async (keys: readonly string[]) => {
    for (const key of keys) sent.push(await send(makegood, { key }, { key }));
  };
  await produce(["a", "b", "c"]);
  await expect.poll(() => receiver.effects.size).toBe(3);
  expect((await processes.makegood(cwd, ["backup", backup], env)).code).toBe(0);
  await produce(["d", "e"]);
  await expect.poll(() => receiver.effects.size).toBe(5);
  // A pass of its own would come within the minute.
  expect((await makegood.send("POST", "/api/v1/verify", {})).status).toBeLessThan(300);
  await writeFile(join(cwd, "sent.ids"), sent.map((id) => `${id}\n`).join(""));
  await makegood.service.stop();
  await rm(join(dataDir, "pgdata", "global"), { recursive: true });

  const producers = { start: () => produce(["a", "b", "c", "d", "e"]) };
  const printed = await followed("restore-and-prove", {
    cwd,
    env: { SETTINGS: makegood.file, BACKUP: backup },
    programs: { systemctl: systemctl({ makegood: makegood.service, producers }) },
  });
  expect(printed.Do).toMatch(/behind_witness: 2/);
  expect(printed.Do).toMatch(/of 5 ids in the list: 2 unknown, 3 delivered/);
  expect(printed["Over when"]).toMatch(/conservation is whole\n5 accepted/);
  expect([...receiver.effects].sort()).toEqual(["a", "b", "c", "d", "e"]);
}, 120_000);

it("rotate keys and tokens: every request is signed with a secret that the receiver knows, and the old ones are refused", async () => {
  const [cwd, schema] = [await workspace(), freshSchema()];
  const old = generateSecret();
  const known = [old];
  /** The new one is handed over. */
  const scp: Program = async ({ args: [file = ""] }) => {
    known.unshift((await readFile(join(cwd, file), "utf8")).trim());
    return { code: 0, stdout: "", stderr: "" };
  };
  const fits = ({ headers, body }: Pick<Arrival, "headers" | "body">, secrets: readonly string[]) =>
    verifyWebhook({ headers, body, secrets }).ok;
  await using receiver = await startReceiver((arrival) => ({ status: fits(arrival, known) ? 200 : 401 }));
  const [tokens, key] = [join(cwd, "tokens"), join(cwd, "evidence.key")];
  const secret = "the-first-token-of-ops";
  await writeFile(tokens, `ops:${secret}\n`);
  const env = {
    DATABASE_URL: databaseUrl(),
    MAKEGOOD_SCHEMA: schema,
    MAKEGOOD_TOKENS_FILE: tokens,
    MAKEGOOD_EVIDENCE_KEY_FILE: key,
  };
  await using makegood = await startDaemon(cwd, env);
  const hook = { sink: { kind: "webhook", url: receiver.url, secrets: [old] }, retry: { attempts_max: 1 } };
  await writeFile(join(cwd, "hook.json"), JSON.stringify(hook));
  const asOps = { authorization: `Bearer ${secret}` };
  expect((await makegood.send("PUT", `/api/v1/topics/${TOPIC}`, hook, asOps)).status).toBeLessThan(300);
  const id = createIds(systemClock);
  const stop = new AbortController();
  let count = 0;
  const producing = (async () => {
    const store = await openStore({ schema });
    while (!stop.signal.aborted) {
      await store.enqueue([newMessage(id(), { topic: TOPIC })]);
      count++;
      await sleep(20);
    }
    await store.close();
  })();
  const printed = await followed("rotate-keys-and-tokens", {
    cwd,
    env: { MAKEGOOD_URL: makegood.url, MAKEGOOD_TOKEN: secret, TOPIC, TOKENS_FILE: tokens, KEY_FILE: key, RECEIVER: "shop" },
    programs: { systemctl: systemctl({ makegood: makegood.service }), scp },
  });
  stop.abort();
  await producing;
  expect(printed["Over when"]).toMatch(/^401\n/);
  expect(printed["Over when"]).not.toContain("dead");
  await expect.poll(() => receiver.effects.size).toBe(count);
  const last = receiver.arrivals.at(-1) as Arrival;
  expect([known.length, fits(last, known.slice(0, 1)), fits(last, [old])]).toEqual([2, true, false]);
  expect(printed.Do).toMatch(/the first of these is new/);
  await makegood.service.stop();
  await dropSchema(schema);
}, 120_000);
