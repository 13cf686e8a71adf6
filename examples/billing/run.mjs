// A billing service and its flaky counterpart: charges while the counterpart refuses, breaks off and answers too late, an outage, and a
// kill -9 in the middle. At the end each reservation was settled exactly once, at its cost, and what can never be settled is a dead letter.
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { startCounterpart } from "./counterpart.mjs";
import { load } from "./package.mjs";

const { startEmbedded, createPostgresStore } = await load("store/postgres/index.js");
const CHARGES = 120;
const TOKEN = { secret: "the secret of this example, 32+ bytes", issuer: "shop", audience: "billing" };
const say = (text) => console.log(text);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const undo = [];
let failed = 0;

function prove(what, holds, detail = "") {
  if (!holds) failed++;
  say(`${holds ? "ok  " : "FAIL"} ${what}${detail === "" ? "" : ` (${detail})`}`);
}

async function until(what, condition) {
  for (let i = 0; i < 1_200; i++) {
    if (await condition()) return;
    await sleep(50);
  }
  throw new Error(`not within 60 s: ${what}`);
}

/** The service as a process of its own. Its log goes nowhere here; in yours it would say what waits and why. */
async function startService(env) {
  const path = fileURLToPath(new URL("./service.mjs", import.meta.url));
  const child = spawn(process.execPath, [path], { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "ignore"] });
  const end = (signal) =>
    new Promise((resolve) => {
      child.once("exit", resolve);
      child.kill(signal);
    });
  undo.push(async () => {
    if (child.exitCode === null && child.signalCode === null) await end("SIGKILL");
  });
  const port = await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve);
    child.once("exit", (code, signal) => reject(new Error(`the service ended (${code ?? signal})`)));
  });
  const base = `http://127.0.0.1:${port}/`;
  /** Asks again while the service says that it is not ready: nothing was promised then. */
  const charge = async (request) => {
    for (let i = 0; i < 100; i++) {
      const answer = await fetch(base, { method: "POST", body: JSON.stringify(request) });
      if (answer.ok) return answer.json();
      await sleep(50);
    }
    throw new Error("not ready for billing for five seconds");
  };
  const health = async () => (await (await fetch(`${base}health`)).json()).billing;
  return { charge, health, end };
}

/** Eight at a time; what got no answer, because the process was killed, is asked again by whoever wanted it. */
async function chargeAll(service, requests, told) {
  const rest = requests.filter(({ reservation_id }) => !told.has(reservation_id));
  const next = async () => {
    for (let one = rest.shift(); one !== undefined; one = rest.shift()) {
      const result = await service.charge(one).catch(() => null);
      if (result) told.set(one.reservation_id, result);
    }
  };
  await Promise.all(Array.from({ length: 8 }, next));
}

async function database() {
  if (process.env.DATABASE_URL) return process.env.DATABASE_URL;
  const home = mkdtempSync(join(tmpdir(), "makegood-billing-"));
  // As root the embedded PostgreSQL runs under another user, who must be able to enter.
  chmodSync(home, 0o755);
  undo.push(async () => rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));
  const embedded = await startEmbedded({ dataDir: join(home, "data") });
  undo.push(() => embedded.close());
  return embedded.url;
}

const count = (told, status) => [...told.values()].filter((result) => result.status === status).length;

async function main() {
  const url = await database();
  const counterpart = await startCounterpart(TOKEN);
  undo.push(async () => counterpart.close());
  const env = {
    DATABASE_URL: url,
    BILLING_URL: counterpart.url,
    TOKEN_SECRET: TOKEN.secret,
    TOKEN_ISSUER: TOKEN.issuer,
    TOKEN_AUDIENCE: TOKEN.audience,
  };
  const run = `run-${process.pid}-${process.hrtime.bigint()}`;
  const requests = Array.from({ length: CHARGES }, (_, i) => ({
    reservation_id: `${run}-${i}`,
    tenant_id: `tenant-${i % 3}`,
    // Larger than any double holds exactly, so that a float anywhere on the way would show.
    actual_cost_micro: `${9_007_199_254_740_993n + BigInt(i)}`,
    trace_id: "",
  }));
  const told = new Map();

  say(`1. ${CHARGES} charges, with an outage and a kill -9 in the middle`);
  const first = await startService(env);
  await until("ready for billing", async () => (await first.health()).ready_for_billing);
  prove("the store is durable, so the service is ready for billing", true);
  await chargeAll(first, requests.slice(0, CHARGES / 3), told);
  counterpart.setDown(true);
  const during = chargeAll(first, requests.slice(CHARGES / 3), told);
  await until("some are kept", async () => count(told, "dlq") >= 20);
  await first.end("SIGKILL");
  await during;
  counterpart.setDown(false);
  prove("the process was killed while charges waited", told.size < CHARGES, `${told.size} of ${CHARGES} were answered`);

  say("2. the next process goes on");
  const second = await startService(env);
  for (let i = 0; i < 10 && told.size < CHARGES; i++) await chargeAll(second, requests, told);
  const outcomes = ["finalized", "idempotent", "dlq"].map((status) => `${count(told, status)} ${status}`);
  prove("every charge ended in one of three outcomes", told.size === CHARGES, outcomes.join(", "));
  await until("nothing waits any more", async () => (await second.health()).dlq_size === 0);

  say("3. what can never be settled");
  const bad = await second.charge({ ...requests[0], actual_cost_micro: "12.5" });
  prove("a cost that is no whole number is a dead letter, not an exception", bad.status === "dlq", bad.reason);
  const released = { ...requests[0], reservation_id: `${run}-released` };
  await second.charge(released);
  await until("it is decided", async () => (await second.health()).dlq_size === 0);
  // The counterpart is flaky here, too: asked until it answers.
  let again = await second.charge(requests[1]);
  for (let i = 0; i < 20 && again.status === "dlq"; i++) again = await second.charge(requests[1]);
  prove("a charge that was settled is idempotent", again.status === "idempotent", again.status);
  await until("nothing waits any more", async () => (await second.health()).dlq_size === 0);
  await second.end("SIGTERM");

  say("4. what is left");
  const { ledger, seen } = counterpart;
  const right = requests.filter(
    ({ reservation_id: id, actual_cost_micro }) => ledger.get(id)?.actualCostMicro === actual_cost_micro,
  );
  prove(
    "each reservation was settled once, at its cost",
    right.length === CHARGES && ledger.size === CHARGES,
    `${right.length} of ${CHARGES}`,
  );
  prove(
    "however often the counterpart was asked",
    seen.requests > CHARGES && seen.repeats > 0,
    `${seen.requests} requests, ${seen.refused} refused, ${seen.broken} broken off, ${seen.repeats} repeats`,
  );
  prove("no request came without a good token", seen.forged === 0);
  const store = createPostgresStore({ url });
  await store.open();
  undo.push(() => store.close());
  const dead = (await store.list({ topic: "billing/finalize", status: "dead", limit: 100 })).data.map(({ key }) => key);
  const mine = dead.filter((key) => key === released.reservation_id || key === bad.id);
  prove("the two that never will be are dead letters with their reasons", mine.length === 2, `${dead.length} dead letters`);
}

try {
  await main();
} catch (error) {
  failed++;
  console.error(error);
} finally {
  for (const step of undo.reverse()) await step();
}
say(failed === 0 ? "all of it holds" : `${failed} did not hold`);
process.exitCode = failed === 0 ? 0 : 1;
