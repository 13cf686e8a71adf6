/**
 * The alerts end to end: Debian's Prometheus scrapes a real server by the shipped rules, Alertmanager posts the notice with its page, the fault is
 * mended, and it posts that it is over. Only `for` is shortened, in a copy. More faults with MAKEGOOD_SOAK=1 (`npm run soak:alerts`).
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { FILES } from "../../deploy/alerts/all.ts";
import { printedDashboards } from "../../deploy/grafana/all.ts";
import { envelope } from "../audit/records.ts";
import { databaseUrl, dropSchema, freshSchema, withClient } from "../support/postgres.ts";
import { type Process, startCli, startWorker } from "../support/processes.ts";
import { type Notice, type Watched, watch } from "../support/prometheus.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { startProxy, type TcpProxy, targetOf } from "../support/tcp-proxy.ts";
import { type Model, queriesOf } from "./dashboard-faults.ts";

const SOAK = process.env.MAKEGOOD_SOAK === "1";
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const RULES = Object.keys(FILES).map((path) => join(ROOT, path));
const PATIENT = { timeout: 240_000 };
const ONCE = { attempts_max: 1, base_ms: 10, max_ms: 10 };

interface Scene extends AsyncDisposable {
  readonly server: Process;
  readonly schema: string;
  /** The same server again, on the same port. */
  restart(): Promise<void>;
  readonly proxy: TcpProxy;
  readonly receiver: Receiver;
  readonly watched: Watched;
  send(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>;
}

const schemas: string[] = [];
afterAll(async () => {
  for (const schema of schemas.splice(0)) await dropSchema(schema);
});

/** A server behind a proxy to its database, and everything that watches it. */
async function scene(): Promise<Scene> {
  const schema = freshSchema();
  schemas.push(schema);
  const proxy = await startProxy(targetOf(databaseUrl()));
  const receiver = await startReceiver();
  const env = {
    ...{ DATABASE_URL: proxy.via(databaseUrl()), MAKEGOOD_SCHEMA: schema },
    ...{ MAKEGOOD_POLL_MS: "50", MAKEGOOD_SINK_ALLOW: "127.0.0.0/8" },
  };
  const start = async (port: string): Promise<string> => {
    server = await startCli(["serve", "--port", port], env);
    return String((await server.fact(({ message }) => message === "listening")).url);
  };
  let server: Process;
  const url = await start("0");
  const watched = await watch(url, RULES);
  return {
    ...{ schema, proxy, receiver, watched },
    get server() {
      return server;
    },
    restart: async () => void (await start(new URL(url).port)),
    async send(method, path, body) {
      const init = { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
      const answer = await fetch(url + path, body === undefined ? { method } : init);
      const said = (await answer.json()) as Record<string, unknown>;
      if (!answer.ok) throw new Error(`${path}: ${JSON.stringify(said)}`);
      return said;
    },
    async [Symbol.asyncDispose]() {
      await watched[Symbol.asyncDispose]();
      await server.end("SIGKILL");
      await receiver[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

/** The page that a notice names is there and is about it. */
function expectPage({ labels, annotations }: Notice): void {
  const page = join(ROOT, String(annotations.runbook));
  expect([annotations.runbook, existsSync(page)]).toEqual([annotations.runbook, true]);
  expect(readFileSync(page, "utf8")).toContain(`# ${labels.alertname}\n`);
}

/** The alert comes, with its page; the fault is mended, and the notice that it is over comes after it. */
async function seen(watched: Watched, alert: string, mend: () => Promise<unknown>): Promise<Notice> {
  const fired = await watched.notice(alert, "firing");
  expectPage(fired);
  const before = watched.notices.length;
  await mend();
  expect((await watched.notice(alert, "resolved", before)).labels).toEqual(fired.labels);
  return fired;
}

const deadLetter = async ({ receiver, send }: Scene): Promise<string> => {
  receiver.default({ status: 422 });
  await send("PUT", "/api/v1/topics/billing/finalize", { sink: { kind: "http", url: receiver.url }, retry: ONCE });
  const { id } = await send("POST", "/api/v1/messages", { topic: "billing/finalize", payload: { amount: 5 } });
  return String(id);
};

const replay = async ({ receiver, send }: Scene, id: string): Promise<void> => {
  receiver.default({ status: 200 });
  await send("POST", `/api/v1/messages/${id}/replay`, { reason: "the receiver is mended" });
};

/** A topic in code only, whose process is not running: its messages wait. */
const unserved = async ({ schema, send }: Scene): Promise<() => Promise<Process>> => {
  const serve = () => startWorker({ url: databaseUrl(), schema, topics: [{ name: "jobs/mail", handler: "ok" }] });
  await (await serve()).end("SIGTERM");
  await send("POST", "/api/v1/messages", { topic: "jobs/mail", payload: {} });
  return serve;
};

/** Where a message is to be delivered is lost from the store; answers how to put it back. */
const loseRow = async ({ schema, send }: Scene): Promise<() => Promise<void>> => {
  await send("PUT", "/api/v1/topics/shop/held", { sink: { kind: "notify" }, paused: true });
  await send("POST", "/api/v1/messages", { topic: "shop/held", payload: {} });
  await send("POST", "/api/v1/verify", {});
  const lost = await withClient((client) => client.query(`delete from "${schema}".ready returning to_jsonb(ready) as row`));
  expect(lost.rowCount).toBe(1);
  await send("POST", "/api/v1/verify", {});
  return async () => {
    const back = `insert into "${schema}".ready select * from jsonb_populate_record(null::"${schema}".ready, $1)`;
    await withClient((client) => client.query(back, [lost.rows[0].row]));
    await send("POST", "/api/v1/verify", {});
  };
};

describe("alerts, from the fault to the notice", PATIENT, () => {
  it("DO-12, AUD-35: a dead letter in billing is told with its page, and that it was replayed, too; every query of the dashboards is answered", async () => {
    await using stage = await scene();
    const id = await deadLetter(stage);
    const fired = await seen(stage.watched, "MakegoodDeadLetterOpen", async () => {
      const asked = Object.values(printedDashboards).flatMap((print) => queriesOf(JSON.parse(print()) as Model));
      const answered = async () => {
        const series = await Promise.all(
          asked.map((expr) => stage.watched.ask(expr.replaceAll("$__rate_interval", "1m").replace(/\$\w+/g, ".+"))),
        );
        return series.filter((found) => found > 0).length;
      };
      // Where nothing of the kind happened there is nothing to show; most of them have something, rates after a second scrape.
      await expect.poll(answered, { timeout: 90_000, interval: 1_000 }).toBeGreaterThan(asked.length / 2);
      await replay(stage, id);
    });
    expect(fired).toMatchObject({ labels: { topic: "billing/finalize", severity: "warning" } });
  });

  if (!SOAK) return;

  it("a topic whose process is gone, with messages", async () => {
    await using stage = await scene();
    const serve = await unserved(stage);
    expect((await seen(stage.watched, "MakegoodWorkerGone", serve)).labels.topic).toBe("jobs/mail");
  });

  it("PostgreSQL is away: the store is down and its counts are not known, while the alerts on counts are blind", async () => {
    await using stage = await scene();
    stage.proxy.refuse();
    stage.proxy.resetAll();
    await stage.watched.notice("MakegoodCountsUnknown", "firing");
    await seen(stage.watched, "MakegoodStoreDown", async () => stage.proxy.heal());
    await stage.watched.notice("MakegoodCountsUnknown", "resolved");
  });

  it("the process is killed: nothing is scraped", async () => {
    await using stage = await scene();
    await stage.server.end("SIGKILL");
    await seen(stage.watched, "M10CollectorSilent", stage.restart);
  });

  it("a receiver is down: its breaker opens, and closes by itself", async () => {
    await using stage = await scene();
    await stage.receiver.down();
    await stage.send("PUT", "/api/v1/topics/shop/charge", { sink: { kind: "http", url: stage.receiver.url } });
    for (let n = 0; n < 20; n++) await stage.send("POST", "/api/v1/messages", { topic: "shop/charge", payload: { n } });
    await seen(stage.watched, "MakegoodBreakerOpen", () => stage.receiver.up());
  });

  it("a row is lost from the store: conservation is broken until it is back", async () => {
    await using stage = await scene();
    const back = await loseRow(stage);
    await seen(stage.watched, "MakegoodConservationBroken", back);
  });

  it("AUD-35: the audit four, each until its page was followed", async () => {
    await using stage = await scene();
    const { send, watched } = stage;
    const audit = "/api/v1/topics/audit/executions";
    await send("POST", "/api/v1/audit/executions", envelope("once"));
    const other = envelope("once", "executions", { outcome: "failure" });
    const { id } = await send("POST", "/api/v1/messages", { topic: "audit/executions", payload: other });
    const resolve = () => send("POST", `/api/v1/messages/${id}/resolve`, { reason: "the first one is right" });
    await seen(watched, "AuditPermanentFailures", resolve);

    for (let n = 0; n < 150; n++) await send("POST", "/api/v1/audit/executions", { not: "a record" }).catch(() => undefined);
    // Over by itself: the producer sends no more of them.
    await seen(watched, "AuditWriteFailureSpike", async () => undefined);

    let sent = 0;
    const record = () => ({ topic: "audit/executions", key: `waits-${++sent}`, payload: envelope(`waits-${sent}`) });
    const wait = async (upTo: number): Promise<void> => {
      await send("POST", `${audit}/pause`, { reason: "to let records wait" });
      while (sent < upTo)
        await send("POST", "/api/v1/messages", { messages: Array.from({ length: Math.min(700, upTo - sent) }, record) });
    };
    // Workers take twenty a second, so a few more than the threshold.
    await wait(5_020);
    await seen(watched, "AuditDLQHigh", () => send("POST", `${audit}/resume`, {}));
    await wait(10_000);
    await seen(watched, "AuditDLQCritical", () => send("POST", `${audit}/resume`, {}));
  });
});
