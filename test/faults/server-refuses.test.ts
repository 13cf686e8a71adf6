/**
 * Fault 17: a server that is there and refuses: read-only by default, or out of connections. The API says 503 and not ready,
 * workers back off instead of hammering, no attempt is used, and everything goes on by itself when the server relents.
 */
import pg from "pg";
import { afterAll, describe, expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { databaseUrl, withClient } from "../support/postgres.ts";
import { startCli, until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { newMessage, scene } from "./scene.ts";

vi.setConfig({ testTimeout: 90_000 });

const roles: string[] = [];
let made = 0;
afterAll(async () => {
  await withClient(async (client) => {
    for (const role of roles) await client.query(`drop owned by ${role}; drop role ${role}`);
  });
});

const asRoot = (text: string) => withClient((client) => client.query(text));

/** A role of its own, so that refusing it touches nobody else on the server. */
async function ownRole(): Promise<{ role: string; url: string }> {
  const url = new URL(databaseUrl());
  const role = `fault17_${process.pid}_${++made}`;
  await withClient(async (client) => {
    // One after the other: two grants on one database at the same moment are a conflict.
    await client.query("select pg_advisory_lock(1717)");
    await client.query(`create role ${role} login password 'secret'`);
    roles.push(role);
    await client.query(`grant create on database ${pg.escapeIdentifier(url.pathname.slice(1))} to ${role}`);
  });
  url.username = role;
  url.password = "secret";
  return { role, url: url.href };
}

const READ_ONLY = {
  what: "default_transaction_read_only",
  refuse: "set default_transaction_read_only = on",
  relent: "reset default_transaction_read_only",
};
const FULL = { what: "too many connections (53300)", refuse: "connection limit 0", relent: "connection limit -1" };

/** Refuses the role and ends its connections; relents when told to, and at the latest when the test ends, for the schema is dropped as that role. */
async function refusal(role: string, { refuse, relent }: typeof READ_ONLY) {
  await asRoot(`alter role ${role} ${refuse}`);
  await asRoot(`select pg_terminate_backend(pid) from pg_stat_activity where usename = '${role}'`);
  const over = () => asRoot(`alter role ${role} ${relent}`);
  return { over, [Symbol.asyncDispose]: async () => void (await over()) };
}

describe("fault 17: the server refuses", () => {
  it.concurrent.for([READ_ONLY, FULL])("fault 17: $what: 503 and backoff, no attempt used, heals", async (how) => {
    const { role, url } = await ownRole();
    await using receiver = await startReceiver();
    const sink = { kind: "http" as const, url: receiver.url };
    await using fault = await scene({ url, topics: [topic("refuse/it", { sink, leaseMs: 2_000, timeoutMs: 1_500 })] });
    const env = { DATABASE_URL: url, MAKEGOOD_SCHEMA: fault.schema, MAKEGOOD_POLL_MS: "100", MAKEGOOD_PORT: "0" };
    const server = await startCli(["serve"], env);
    const { url: base } = await server.fact(({ message }) => message === "listening");
    const post = (n: number) =>
      fetch(`${base}/api/v1/messages`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ topic: "refuse/it", payload: { n }, key: `http-${n}` }),
      });
    const ready = async () => (await fetch(`${base}/readyz`)).status;
    expect((await post(0)).status).toBe(201);
    fault.history.ok("http-0", '{"n":0}');
    expect(await ready()).toBe(200);
    // Due while the server refuses.
    await fault.mg.enqueueMany(
      "refuse/it",
      Array.from({ length: 20 }, (_, n) => ({ key: `due-${n}`, payload: { n }, delayMs: 1_500 })),
    );
    for (let n = 0; n < 20; n++) fault.history.ok(`due-${n}`, JSON.stringify({ n }));

    const from = server.facts.length;
    await using refused = await refusal(role, how);
    // Sent on a connection whose end was on its way, the outcome is rightly unknown: that is 503 too, and the next one knows.
    await until("the server says that its store refuses", async () => {
      const answer = await post(1);
      expect(answer.status).toBe(503);
      expect(answer.headers.get("content-type")).toContain("application/problem+json");
      const { code } = (await answer.json()) as { code: string };
      expect(code).toMatch(/^(store_unavailable|outcome_unknown)$/);
      return code === "store_unavailable";
    });
    await until("it is not ready", async () => (await ready()) === 503);
    expect((await fetch(`${base}/livez`)).status).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    expect((await post(1)).status).toBe(503);
    const failures = server.facts.slice(from).filter(({ event }) => event === "store_error");
    expect(failures.length).toBeGreaterThan(0);
    // Backoff: some seconds of refusal are tens of failures over all loops, not hundreds.
    expect(failures.length).toBeLessThan(120);
    expect(receiver.of("due-0")).toEqual([]);

    await refused.over();
    await until("it is ready again", async () => (await ready()) === 200, 20_000);
    await until("it accepts again", async () => [200, 201].includes((await post(1)).status), 20_000);
    fault.history.ok("http-1", '{"n":1}');
    await fault.settled(20_000);
    expect(await server.end("SIGTERM")).toEqual({ code: 0, signal: null });
    expect(server.stderr()).toBe("");
    expect(await fault.check({ receiver, attemptsMax: 1 })).toEqual([]);
  });

  it.concurrent("fault 17: a caller whose connections were opened read-only does not keep them", async () => {
    const { role, url } = await ownRole();
    await using fault = await scene({ url, topics: [topic("refuse/it")] });
    // A batch with keys is a transaction of several statements: its rollback succeeds, so the connection looks sound.
    const batch = (name: string) => fault.mg.store.enqueue([newMessage("refuse/it", name), newMessage("refuse/it")]);
    const outcome = (name: string) =>
      batch(name).then(
        () => "accepted",
        ({ code }) => code,
      );
    await batch("before");
    await using refused = await refusal(role, READ_ONLY);
    await until("it is refused", async () => {
      const code = await outcome("during");
      expect(code).toMatch(/^(store_unavailable|outcome_unknown)$/);
      return code === "store_unavailable";
    });
    await refused.over();
    await until("it accepts again", async () => (await outcome("after")) === "accepted", 10_000);
    expect((await fault.counts()).pending).toBe(4);
  });
});
