/**
 * DX-10: what the configuration names is really started. The command line as real processes, with the seeds' variables: an entry that is added
 * from outside is delivered, what dies appears on the outlet's stream, and kill -9 of one worker leaves its entries to another.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { envelope } from "../audit/records.ts";
import { databaseUrl, dropSchema, freshSchema, withClient } from "../support/postgres.ts";
import { type Process, startCli, until, workspace } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { DURABLE, type RedisServer, startRedis } from "../support/redis-server.ts";
import { freshPrefix } from "../support/redis-store.ts";

/** The id of an entry that was added two minutes ago: its first wait is over (AUD-19). */
const WAITED = `${Date.now() - 120_000}-*`;
const AUDIT = ["work", "--topics", "audit/*"];

describe("the seeds' streams, started by the command line", () => {
  let redis: RedisServer;
  let schema: string;
  const processes: Process[] = [];
  const start = async (args: readonly string[], env: Record<string, string>, cwd?: string): Promise<Process> => {
    const base = {
      DATABASE_URL: databaseUrl(),
      MAKEGOOD_SCHEMA: schema,
      MAKEGOOD_POLL_MS: "50",
      REDIS_ADDR: `127.0.0.1:${redis.port}`,
    };
    const one = await startCli(args, { ...base, ...env }, cwd);
    processes.push(one);
    return one;
  };
  const line = (one: Process, message: string) => one.fact((fact) => fact.message === message);
  const consumerOf = async (one: Process): Promise<string> => String((await line(one, "stream started")).consumer);
  const length = async (stream: string): Promise<number> => Number(await redis.ask("XLEN", stream));
  const fieldsOf = async (stream: string): Promise<Record<string, string>[]> =>
    ((await redis.ask("XRANGE", stream, "-", "+")) as [string, string[]][]).map(([, flat]) =>
      Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1] as string]] : []))),
    );
  const pendingOf = async (stream: string, group: string): Promise<{ id: string; consumer: string }[]> =>
    ((await redis.ask("XPENDING", stream, group, "-", "+", "100")) as [string, string][]).map(([id, consumer]) => ({
      id,
      consumer,
    }));
  const addRecord = (id: string) => {
    const fields = [
      "audit_type",
      "executions",
      "audit_data",
      JSON.stringify(envelope(id)),
      "created_at",
      "1",
      "retry_count",
      "0",
    ];
    return redis.ask("XADD", "audit-dlq", WAITED, ...fields);
  };
  const stored = (): Promise<string[]> =>
    withClient(async (client) => {
      const { rows } = await client.query(`select event_id from "${schema}".audit_record order by event_id`);
      return rows.map(({ event_id }) => String(event_id));
    });
  /** While it is open nothing is accepted: a reader of an entry keeps it. */
  async function noAcceptance(): Promise<() => Promise<void>> {
    const client = new pg.Client({ connectionString: databaseUrl() });
    await client.connect();
    await client.query(`begin; lock table "${schema}".message in share mode`);
    return async () => {
      await client.query("rollback");
      await client.end();
    };
  }
  /** kill -9 of the reader that has entries; returns what it had. */
  async function killHolder(workers: readonly Process[], stream: string, group: string) {
    await until("a reader has an entry", async () => (await pendingOf(stream, group)).length > 0);
    const [first] = await pendingOf(stream, group);
    const names = await Promise.all(workers.map(consumerOf));
    const at = names.indexOf(first?.consumer as string);
    const victim = workers[at] as Process;
    expect(await victim.end("SIGKILL")).toMatchObject({ signal: "SIGKILL" });
    const left = (await pendingOf(stream, group)).filter(({ consumer }) => consumer === names[at]).map(({ id }) => id);
    expect(left.length).toBeGreaterThan(0);
    return { consumer: names[at] as string, left, survivors: workers.filter((one) => one !== victim) };
  }
  const reclaimed = (one: Process): string[] =>
    one.facts.filter(({ message }) => message === "stream reclaimed").flatMap(({ ids }) => ids as string[]);

  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(async () => {
    schema = freshSchema();
    await redis.ask("FLUSHALL");
  });
  afterEach(async () => {
    await Promise.all(processes.splice(0).map((one) => one.end("SIGKILL")));
    await dropSchema(schema);
  });
  afterAll(() => redis.stop());

  it("AUD-31, DA-12: audit workers with the seed's variables", { timeout: 60_000 }, async () => {
    const env = {
      MAKEGOOD_STREAMS: "audit",
      CONSUMER_GROUP: "data-storage-retry-workers",
      CONSUMER_NAME: "audit-retry-worker-0",
    };
    const group = env.CONSUMER_GROUP;
    const first = await start(AUDIT, env);
    await line(first, "working");
    const workers = [first, await start(AUDIT, env)];
    const consumers = await Promise.all(workers.map(consumerOf));
    expect(new Set(consumers).size).toBe(2);
    for (const name of consumers) expect(name).toMatch(/^audit-retry-worker-0-/);

    await addRecord("e-1");
    await until("the record is stored", async () => (await stored()).includes("e-1"));
    await redis.ask("XADD", "audit-dlq", WAITED, "audit_type", "nobody", "audit_data", '{"kept":true}');
    await until("the dead letter is published", async () => (await length("audit:dead-letter")) === 1);
    const [dead] = await fieldsOf("audit:dead-letter");
    expect(dead).toMatchObject({ topic: "audit/quarantine", last_code: "invalid_record" });
    expect(JSON.parse(dead?.payload as string)).toMatchObject({ audit_type: "nobody", record: '{"kept":true}' });

    const accept = await noAcceptance();
    for (const id of ["k-1", "k-2", "k-3", "k-4"]) await addRecord(id);
    const { consumer, left, survivors } = await killHolder(workers, "audit-dlq", group);
    await accept();
    // A minute later: the time that must pass before anybody takes them for a dead one's.
    await redis.ask("XCLAIM", "audit-dlq", group, consumer, "0", ...left, "IDLE", "61000", "RETRYCOUNT", "1", "JUSTID");
    // The deployment starts another pod under the same name.
    const replacement = await start(AUDIT, env);
    await until("all of them are stored", async () => (await stored()).length === 5);
    expect(await stored()).toEqual(["e-1", "k-1", "k-2", "k-3", "k-4"]);
    await until("the stream is empty", async () => (await length("audit-dlq")) === 0);
    const live = [...survivors, replacement];
    expect(live.flatMap(reclaimed).sort()).toEqual([...left].sort());
    expect(await length("audit:dead-letter")).toBe(1);

    const ends = await Promise.all(live.map((one) => one.end("SIGTERM")));
    expect(ends.map(({ code }) => code)).toEqual([0, 0]);
    const names = ((await redis.ask("XINFO", "CONSUMERS", "audit-dlq", group)) as string[][]).map(([, name]) => name);
    expect(names).toEqual([consumer]);
  });

  it("REC-31, REC-40, DR-11: recovery workers with the seed's variables; the second takes over by itself", {
    timeout: 60_000,
  }, async () => {
    await using receiver = await startReceiver(({ body }) => ({ status: body.includes('"bad"') ? 422 : 200 }));
    const cwd = await workspace();
    const sink = { kind: "http", url: receiver.url };
    await writeFile(join(cwd, "makegood.config.json"), JSON.stringify({ topics: { "recovery/evaluate": { sink } } }));
    const stream = "m10:test:stream";
    const env = {
      MAKEGOOD_STREAMS: "recovery",
      M10_STREAM_KEY: stream,
      M10_CONSUMER_GROUP: "m10:test:group",
      M10_DEAD_LETTER_STREAM: "m10:test:dead",
      M10_STREAM_MAX_LEN: "5",
      M10_CLAIM_IDLE_MS: "1000",
      M10_RECLAIM_BASE_BACKOFF_MS: "1000",
      M10_MAX_RECLAIM_ATTEMPTS: "20",
    };
    const add = (candidate: string) => redis.ask("XADD", stream, "*", "candidate_id", candidate);
    const seen = () => new Set(receiver.arrivals.map(({ body }) => JSON.parse(body).candidate_id as string));
    const many = Array.from({ length: 20 }, (_, n) => `c-${n}`);
    for (const one of many) await add(one);

    const args = ["work", "--topics", "recovery/*"];
    const first = await start(args, env, cwd);
    // Longer than M10_STREAM_MAX_LEN: said, and every single entry is delivered.
    expect(await line(first, "stream too long")).toMatchObject({ level: "warn", stream: "recovery", lengthMax: 5 });
    await until("all are delivered", () => seen().size === many.length);
    await until("the stream is empty", async () => (await length(stream)) === 0);

    await add("bad");
    await until("the dead letter is published", async () => (await length("m10:test:dead")) === 1);
    expect(await fieldsOf("m10:test:dead")).toMatchObject([
      { topic: "recovery/evaluate", payload: '{"candidate_id":"bad"}', last_code: "http_422" },
    ]);

    const workers = [first, await start(args, env, cwd)];
    await Promise.all(workers.map(consumerOf));
    const accept = await noAcceptance();
    for (const one of ["k-1", "k-2", "k-3", "k-4"]) await add(one);
    const { left, survivors } = await killHolder(workers, stream, env.M10_CONSUMER_GROUP);
    await accept();
    await until("all are delivered", () => ["k-1", "k-2", "k-3", "k-4"].every((one) => seen().has(one)));
    await until("the stream is empty", async () => (await length(stream)) === 0);
    expect(survivors.flatMap(reclaimed)).toEqual(expect.arrayContaining(left));
    // One message for each entry, however often it was handed over.
    expect(new Set(receiver.arrivals.map(({ id }) => id)).size).toBe(many.length + 5);
    expect(seen().size).toBe(many.length + 5);
    expect(await length("m10:test:dead")).toBe(1);
  });

  it("DATA_STORAGE_URL: a worker without a database sends the records to the service; serve opens streams, too", {
    timeout: 60_000,
  }, async () => {
    const service = await start(["serve", "--port", "0"], { MAKEGOOD_STREAMS: "recovery" });
    const { url } = await line(service, "listening");
    const env = {
      DATABASE_URL: "",
      MAKEGOOD_STORE: "redis",
      MAKEGOOD_REDIS_PREFIX: freshPrefix(),
      REDIS_URL: redis.url,
      REDIS_ADDR: "",
      MAKEGOOD_STREAMS: "audit",
      DATA_STORAGE_URL: String(url),
    };
    const sender = await start(["work", "--topics", "audit-write/*"], env);
    await addRecord("e-1");
    await until("the service has stored it", async () => (await stored()).includes("e-1"));
    await redis.ask("XADD", "audit-dlq", WAITED, "audit_type", "executions", "audit_data", "{half");
    await until("the dead letter is published", async () => (await length("audit:dead-letter")) === 1);
    expect(await fieldsOf("audit:dead-letter")).toMatchObject([{ topic: "audit-write/quarantine" }]);
    expect(sender.facts.filter(({ message }) => String(message).startsWith("this process reads a stream"))).toEqual([]);

    // The service evaluates: what names no candidate of its own is judged at once and kept with the reason.
    await redis.ask("XADD", "m10:evaluate:stream", "*", "candidate_id", "c-1");
    await until("it was judged", async () => {
      const answer = await fetch(`${url}/api/v1/messages?topic=recovery/evaluate`);
      const { data } = (await answer.json()) as { data: { status: string; last_code: string | null }[] };
      return data.length === 1 && data[0]?.status === "dead" && data[0].last_code === "invalid_message";
    });
    const ends = await Promise.all([sender, service].map((one) => one.end("SIGTERM")));
    expect(ends.map(({ code }) => code)).toEqual([0, 0]);
  });

  it("DA-17: a worker starts and works without Redis, and reads once it is there", { timeout: 60_000 }, async () => {
    const own = await startRedis([...DURABLE, "--appendfsync", "always"]);
    await own.stop("SIGKILL");
    const worker = await start(["work", "--topics", "other/*"], {
      MAKEGOOD_STREAMS: "audit",
      REDIS_ADDR: `127.0.0.1:${own.port}`,
    });
    await line(worker, "working");
    expect(await line(worker, "stream open failed")).toMatchObject({ level: "warn", stream: "audit" });
    // It reads a stream for others: that may be meant, and it is said.
    expect(await line(worker, "this process reads a stream and does not work on its topics")).toMatchObject({ level: "warn" });
    await own.start();
    const fields = ["audit_type", "executions", "audit_data", JSON.stringify(envelope("e-1"))];
    await own.ask("XADD", "audit-dlq", "*", ...fields);
    await until("it was judged", async () => {
      const { rows } = await withClient((client) => client.query(`select count(*)::int as n from "${schema}".message`));
      return rows[0]?.n === 1;
    });
    await own.stop();
  });

  it("mistakes are reported at start, all at once, with exit code 2", async () => {
    const worker = await start(AUDIT, {
      MAKEGOOD_STREAMS: "audit,recovery",
      REDIS_ADDR: "not an address",
      CONSUMER_GROUP: "two words",
      M10_RECLAIM_BASE_BACKOFF_MS: "120000",
      M10_RECLAIM_MAX_BACKOFF_MS: "90000",
    });
    expect(await worker.ended).toMatchObject({ code: 2 });
    expect(worker.stderr()).toMatch(/3 mistakes:[\s\S]*REDIS_ADDR[\s\S]*CONSUMER_GROUP[\s\S]*M10_RECLAIM_MAX_BACKOFF_MS/);
  });
});
