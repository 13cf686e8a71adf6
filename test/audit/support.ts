/**
 * A whole audit server on a PostgreSQL schema of its own, listening on a real port, with a proxy before its database: down, back and full
 * at will. It can be stopped and started again at the same address, as a deployment would.
 */
import { createMakegood, type Makegood, type MakegoodOptions } from "../../src/create.ts";
import { createLog } from "../../src/observe/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { auditTopics } from "../../src/presets/audit/topics.ts";
import { type App, createApp } from "../../src/server/app.ts";
import { kernelOf } from "../../src/server/kernel.ts";
import { listen } from "../../src/server/listen.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { configOf } from "../server/support.ts";
import { freePort } from "../support/free-port.ts";
import { databaseUrl, dropSchema, freshSchema, withClient } from "../support/postgres.ts";
import { startProxy, targetOf } from "../support/tcp-proxy.ts";

export interface AuditServer extends AsyncDisposable {
  readonly url: string;
  readonly schema: string;
  readonly mg: () => Makegood;
  readonly lines: string[];
  post(type: string, body: unknown): Promise<Response>;
  /** The stored texts by event id, read past the proxy. */
  stored(): Promise<Map<string, string>>;
  metric(pattern: RegExp): Promise<number>;
  databaseDown(): void;
  databaseUp(): void;
  /** Every insert into the tables that records and messages need fails with PostgreSQL's code for a full disk. */
  databaseFull(full: boolean): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
}

interface Running {
  readonly mg: Makegood;
  readonly app: App;
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/** The policy `audit` in seconds instead of hours, for tests that wait for it. */
export const QUICK = { policy: "audit", tableMs: [200, 300, 400, 500, 600, 700], jitter: "none" } as const;

const TABLES = ["audit_event", "message", "ready"];

export async function startAuditServer(options: Partial<MakegoodOptions> = {}): Promise<AuditServer> {
  const schema = freshSchema();
  const proxy = await startProxy(targetOf(databaseUrl()));
  const lines: string[] = [];
  const log = createLog({ clock: systemClock, format: "json", level: "debug", write: (line) => void lines.push(line) });
  const config = await configOf();
  const port = await freePort();
  let running: Running | undefined;

  async function start(): Promise<void> {
    const store = createPostgresStore({ url: proxy.via(databaseUrl()), schema, connectTimeoutMs: 1_000, queryTimeoutMs: 2_000 });
    const mg = await createMakegood({
      pollMs: 100,
      errorLog: () => {},
      ...options,
      store,
      topics: auditTopics(store.audit, QUICK),
    });
    const worker = mg.work();
    const kernel = kernelOf({ config, mg, log, clock: systemClock, worker, draining: () => false });
    const app = createApp({ kernel, tokens: [], anonymous: "local", hosts: null });
    const listening = await listen(app.reply, "127.0.0.1", port, systemClock);
    const close = async () => {
      await listening.close(1_000);
      app.close();
      await mg.close({ drainMs: 500 });
    };
    running = { mg, app, url: listening.url, port, close };
  }

  async function stop(): Promise<void> {
    await running?.close();
    running = undefined;
  }

  await start();
  const url = running!.url;
  return {
    url,
    schema,
    lines,
    mg: () => running!.mg,
    post: (type, body) =>
      fetch(`${url}/api/v1/audit/${type}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    stored: () =>
      withClient(async (client) => {
        const { rows } = await client.query(`select event_id, payload from "${schema}".audit_record order by seq`);
        return new Map(rows.map(({ event_id, payload }) => [event_id as string, payload as string]));
      }),
    async metric(pattern) {
      const text = await (await fetch(`${url}/metrics`)).text();
      const line = text.split("\n").find((one) => !one.startsWith("#") && pattern.test(one));
      return Number(line?.split(" ").at(-1) ?? Number.NaN);
    },
    databaseDown() {
      proxy.refuse();
      proxy.resetAll();
    },
    databaseUp: () => proxy.heal(),
    databaseFull: (full) =>
      withClient(async (client) => {
        await client.query(
          `create or replace function "${schema}".full_disk() returns trigger language plpgsql as $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$`,
        );
        for (const table of TABLES) {
          await client.query(
            full
              ? `create trigger full_disk before insert on "${schema}".${table} for each statement execute function "${schema}".full_disk()`
              : `drop trigger full_disk on "${schema}".${table}`,
          );
        }
      }),
    stop,
    start,
    async [Symbol.asyncDispose]() {
      await stop();
      await proxy[Symbol.asyncDispose]();
      await dropSchema(schema);
    },
  };
}
