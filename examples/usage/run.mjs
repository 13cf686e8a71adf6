// A chat turn with quota: turns that end well, are cancelled, fail before and after the provider was asked, and one whose process is
// killed with kill -9. At the end every reserve has exactly one message, billing has each once, and the quota adds up to the ledger.
import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { load } from "../package.mjs";
import { atTheEnd, database, prove, run, say, startProcess, until } from "../prove.mjs";
import { startBilling } from "./billing.mjs";

const { createPostgresStore, createPostgresUsageStore, createConnection } = await load("store/postgres/index.js");

/** The service as a process of its own; `said` resolves with its next line of that type. */
async function startService(env) {
  const path = fileURLToPath(new URL("./service.mjs", import.meta.url));
  const service = startProcess([path], { ...process.env, ...env });
  const said = (type) => service.said((fact) => fact.type === type);
  const { end } = service;
  const { port } = await said("ready");
  const turn = (body, signal) =>
    fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: JSON.stringify(body), signal }).then(async (answer) => ({
      status: answer.status,
      ...(await answer.json()),
    }));
  return { turn, said, end };
}

async function main() {
  const url = await database();
  const billing = await startBilling();
  atTheEnd(() => billing.close());
  const tenantId = randomUUID();
  const [alice, bob] = [randomUUID(), randomUUID()];
  const env = { DATABASE_URL: url, BILLING_URL: billing.url, TENANT_ID: tenantId };
  const store = createPostgresStore({ url });
  const books = createPostgresUsageStore({ url });
  await store.open();
  await books.open();
  const sql = createConnection({ url });
  await sql.open();
  atTheEnd(async () => {
    await sql.close();
    await books.close();
    await store.close();
  });

  say("A chat service reserves quota for each turn and settles it once, whatever becomes of the turn or of the process.");
  say("1. turns of every kind");
  const service = await startService(env);
  const kinds = ["plain", "plain", "long", "breaks", "refused", "plain"];
  const turns = await Promise.all(kinds.map((kind) => service.turn({ userId: alice, kind })));
  prove(
    "each turn was finalised before its client heard of it",
    turns.every(({ state }) => state && state !== "running"),
  );
  prove(
    "known usage is charged as counted, unknown by estimate, none where the provider was never asked",
    turns.map(({ method }) => method).join() === "actual,actual,actual,estimated,released,actual",
    turns.map(({ method }) => method).join(", "),
  );
  const cancel = new AbortController();
  const reserved = service.said("reserved");
  const cancelled = service.turn({ userId: alice, kind: "patient" }, cancel.signal).catch(() => "gone");
  await reserved;
  cancel.abort();
  prove("a client may leave in the middle", (await cancelled) === "gone");

  say("2. quota");
  const many = await Promise.all(Array.from({ length: 14 }, () => service.turn({ userId: bob, kind: "plain", plan: "free" })));
  const refused = many.filter(({ status }) => status === 429).length;
  prove("what does not fit into the quota is refused before it starts", refused > 0 && refused < 14, `${refused} of 14 refused`);

  say("3. kill -9 in the middle of a turn");
  const next = service.said("reserved");
  const lost = service.turn({ userId: alice, kind: "slow" }).catch(() => "killed");
  const { turnId } = await next;
  await service.end("SIGKILL");
  await lost;
  const orphan = { tenantId: tenantId.replaceAll("-", ""), turnId: turnId.replaceAll("-", "") };
  prove("its reserve is still held", (await books.turn(orphan)).state === "running");
  // As if five minutes had passed.
  const silence = "update makegood.chat_turns set progress_at = progress_at - interval '5 minutes' where state = 'running'";
  await sql.rows("example", silence, []);
  const again = await startService(env);
  await until("no turn runs any more", async () => {
    const [[running]] = await sql.rows("example", "select count(*) from makegood.chat_turns where state = 'running'", []);
    return running === "0";
  });
  const { settlement } = await books.turn(orphan);
  prove(
    "the watchdog of the next process aborted it, by estimate",
    settlement.method === "estimated" && settlement.reason === "orphaned",
  );

  say("4. what is left");
  const [[reserves, final, messages]] = await sql.rows(
    "example",
    `select count(*), count(message_id), (select count(*) from makegood.modkit_outbox_events where topic = 'usage_snapshot') from makegood.chat_turns where tenant_id = $1`,
    [tenantId],
  );
  prove("one message for each reserve", reserves === final && final === messages, `${reserves} reserves, ${messages} messages`);
  await until("billing has all of them", async () => billing.ledger.size === Number(reserves));
  await until("all delivered", async () => {
    const [[open]] = await sql.rows(
      "example",
      "select count(*) from makegood.modkit_outbox_events where status <> 'delivered'",
      [],
    );
    return open === "0";
  });
  await again.end("SIGTERM");
  const { seen, ledger } = billing;
  prove(
    "billing acted once for each key, however often it was asked",
    ledger.size === Number(reserves),
    `${seen.requests} requests, ${seen.refused} refused, ${seen.repeats} repeats`,
  );
  let spent = 0n;
  for (const userId of [alice, bob]) {
    const quota = { tenantId: orphan.tenantId, userId: userId.replaceAll("-", ""), period: "2026-11" };
    for (const row of await books.quota(quota)) {
      prove("nothing is reserved any more", row.reservedCredits === 0n);
      spent += row.spentCredits;
    }
  }
  const charged = [...ledger.values()].reduce((sum, snapshot) => sum + BigInt(snapshot.settled_credits), 0n);
  prove("the quota that was spent is what billing was told", spent === charged, `${spent} credits`);
  prove("quota rows and turns add up", (await books.verify()).length === 0);
  const capped = [...ledger.values()].filter((snapshot) => snapshot.overshoot_capped).length;
  prove("usage far over its reserve was capped and flagged", capped === 1);
  prove("no identifier of the provider left the house", !JSON.stringify([...ledger.values()]).includes("resp_"));
}

await run(main);
