// A billing service and its flaky counterpart: charges while the counterpart refuses, breaks off and answers too late, an outage, and a
// kill -9 in the middle. At the end each reservation was settled exactly once, at its cost, and what can never be settled is a dead letter.
import { fileURLToPath } from "node:url";
import { load } from "../package.mjs";
import { atTheEnd, database, prove, run, say, sleep, startProcess, until } from "../prove.mjs";
import { startCounterpart } from "./counterpart.mjs";

const { createPostgresStore } = await load("store/postgres/index.js");
const CHARGES = 120;
const TOKEN = { secret: "the secret of this example, 32+ bytes", issuer: "shop", audience: "billing" };

/** The service as a process of its own. Its log goes nowhere here; in yours it would say what waits and why. */
async function startService(env) {
  const path = fileURLToPath(new URL("./service.mjs", import.meta.url));
  const { said, end } = startProcess([path], { ...process.env, ...env }, { log: "ignore" });
  const { port } = await said(({ type }) => type === "ready");
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

/** Eight at a time; what got no answer, because the process was killed, is asked again. */
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

const count = (told, status) => [...told.values()].filter((result) => result.status === status).length;

async function main() {
  const url = await database();
  const counterpart = await startCounterpart(TOKEN);
  atTheEnd(() => counterpart.close());
  const env = {
    DATABASE_URL: url,
    BILLING_URL: counterpart.url,
    TOKEN_SECRET: TOKEN.secret,
    TOKEN_ISSUER: TOKEN.issuer,
    TOKEN_AUDIENCE: TOKEN.audience,
  };
  const prefix = `run-${process.pid}-${process.hrtime.bigint()}`;
  const requests = Array.from({ length: CHARGES }, (_, i) => ({
    reservation_id: `${prefix}-${i}`,
    tenant_id: `tenant-${i % 3}`,
    // Larger than any double holds exactly, so that a float anywhere on the way would show.
    actual_cost_micro: `${9_007_199_254_740_993n + BigInt(i)}`,
    trace_id: "",
  }));
  const told = new Map();

  say("A service settles charges with a counterpart that refuses, breaks off and answers too late.");
  say(`1. ${CHARGES} charges, with an outage and a kill -9 in the middle`);
  const first = await startService(env);
  await until("ready for billing", async () => (await first.health()).ready_for_billing);
  const { ready_for_billing, dlq_durable, dlq_store_type } = await first.health();
  prove("the service is ready: what it cannot settle at once is kept durably", ready_for_billing && dlq_durable, dlq_store_type);
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
  prove("every charge ended in one of three outcomes, none in an exception", told.size === CHARGES, outcomes.join(", "));
  await until("nothing waits any more", async () => (await second.health()).dlq_size === 0);

  say("3. what can never be settled");
  const bad = await second.charge({ ...requests[0], actual_cost_micro: "12.5" });
  prove("a cost that is no whole number is a dead letter, not an exception", bad.status === "dlq", bad.reason);
  const released = { ...requests[0], reservation_id: `${prefix}-released` };
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
  const kept = createPostgresStore({ url });
  await kept.open();
  atTheEnd(() => kept.close());
  const { data: dead } = await kept.list({ topic: "billing/finalize", status: "dead", limit: 100 });
  const reasons = dead.filter(({ key }) => key === released.reservation_id || key === bad.id).map(({ lastCode }) => lastCode);
  const expected = ["invalid_request", "settled_differently"];
  prove(
    "the two that never will be are dead letters with their reasons",
    `${reasons.sort()}` === `${expected}`,
    reasons.join(", "),
  );
}

await run(main);
