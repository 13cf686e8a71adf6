/**
 * What real processes export: every declared metric, in a server, a worker and a producer; and nothing that they do not know.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createMakegood } from "../../src/create.ts";
import { METRICS, type Metric, metricNames } from "../../src/observe/table.ts";
import { startRecoveryStream } from "../../src/presets/index.ts";
import { startProbes } from "../../src/server/index.ts";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { type Process, startCli, until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { DURABLE, startRedis } from "../support/redis-server.ts";
import { startProxy, targetOf } from "../support/tcp-proxy.ts";
import { scrape } from "./scrape.ts";

const schemas: string[] = [];
afterAll(async () => {
  for (const schema of schemas.splice(0)) await dropSchema(schema);
});
const schema = (): string => {
  schemas.push(freshSchema());
  return schemas.at(-1) as string;
};
const urlOf = async (one: Process, message: string): Promise<string> =>
  String((await one.fact((fact) => fact.message === message, 30_000)).url);

/** Real processes on a busy machine. */
const PATIENT = { timeout: 120_000 };

describe("real processes", PATIENT, () => {
  it("CON-26, DR-37, DR-51: serve and work export every declared metric, and what both read of the store is the same", async () => {
    await using receiver = await startReceiver();
    const env = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema(), MAKEGOOD_POLL_MS: "50" };
    const server = await startCli(["serve"], { ...env, MAKEGOOD_PORT: "0" });
    const base = await urlOf(server, "listening");
    const put = (path: string, body: unknown, method = "PUT") =>
      fetch(base + path, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    await put("/api/v1/topics/shop/orders", { sink: { kind: "http", url: receiver.url } });
    await put("/api/v1/topics/shop/held", { sink: { kind: "notify" }, paused: true });
    for (const topic of ["shop/orders", "shop/held"])
      expect((await put("/api/v1/messages", { topic, payload: { a: 1 } }, "POST")).status).toBe(201);
    const worker = await startCli(["work", "--probe-port", "0"], env);
    const probes = await urlOf(worker, "probes and metrics are answered");
    expect((await fetch(`${probes}/livez`)).status).toBe(200);
    await until("the worker is ready", async () => (await fetch(`${probes}/readyz`)).status === 200);
    expect((await fetch(`${probes}/api/v1/messages`)).status).toBe(404);

    for (const where of [base, probes]) {
      await until(
        "all sources answered",
        async () => (await scrape(where)).value("makegood_source_up", '{source="groups"}') === 1,
      );
      const found = await scrape(where);
      expect(metricNames().filter((name) => !found.types.has(name))).toEqual([]);
      for (const [name, { type }] of Object.entries<Metric>(METRICS)) expect([name, found.types.get(name)]).toEqual([name, type]);
      expect(found.value("makegood_messages", '{topic="shop/held",status="pending"}')).toBe(1);
      expect(found.value("makegood_topic_paused", '{topic="shop/held"}')).toBe(1);
      expect(found.value("makegood_candidates", '{decision="pending"}')).toBe(0);
      for (const name of [
        "makegood_audit_pending",
        "makegood_groups_new",
        "recovery_db_queue_depth",
        "recovery_db_queue_stalled",
      ])
        expect([name, found.value(name)]).toEqual([name, 0]);
      expect(found.value("makegood_store_up")).toBe(1);
      expect(found.value("makegood_store_survives")).toBe(2);
      expect(found.value("makegood_lock_active", '{lock_name="maintenance"}')).toBe(1);
      // Nothing waits there, so nothing has an age, and no value is no number.
      expect(found.sampled).not.toContain("makegood_held_below_oldest_seconds");
      expect(found.text).not.toMatch(/^(makegood|recovery|m10|kubernaut)_.* (NaN|Nan|undefined|null|-?Infinity)$/m);
    }
    expect(await worker.end("SIGTERM")).toMatchObject({ code: 0 });
    expect(await server.end("SIGTERM")).toMatchObject({ code: 0 });
  });

  it("a producer in library mode has probes and metrics; anyone else than this machine needs a token", async () => {
    const mg = await createMakegood({ store: createMemoryStore(), log: "silent" });
    await using probes = await startProbes(mg, { port: 0 });
    expect(await (await fetch(`${probes.url}/readyz`)).text()).toBe("ok\n");
    const found = await scrape(probes.url);
    expect(metricNames().filter((name) => !found.types.has(name))).toEqual([]);
    // Recovery is not kept in memory: no groups, rather than none of them.
    expect(found.sampled).not.toContain("makegood_groups");
    await expect(startProbes(mg, { port: 0, host: "0.0.0.0" })).rejects.toMatchObject({ code: "invalid_config" });
    await using guarded = await startProbes(mg, { port: 0, host: "0.0.0.0", tokens: "prom:0123456789abcdef" });
    const local = `http://127.0.0.1:${guarded.port}`;
    expect((await fetch(`${local}/livez`)).status).toBe(200);
    expect((await fetch(`${local}/metrics`)).status).toBe(401);
    expect((await scrape(local, { authorization: "Bearer 0123456789abcdef" })).value("makegood_store_survives")).toBe(0);
    await mg.close();
  });
});

describe("streams", PATIENT, () => {
  it("REC-32: length, pending and consumers of a stream; while Redis is away they are absent, and everything else is there", async () => {
    const redis = await startRedis(DURABLE);
    await redis.stop("SIGKILL");
    const mg = await createMakegood({ store: createMemoryStore(), log: "silent" });
    await using probes = await startProbes(mg, { port: 0 });
    const doors = startRecoveryStream({ mg, redis: redis.url });
    const source = `{source="stream ${doors.stream}"}`;
    const away = await scrape(probes.url);
    expect(away.value("makegood_source_up", source)).toBe(0);
    expect([...away.sampled].filter((name) => /^(recovery|makegood)_stream_/.test(name))).toEqual([]);
    expect(away.value("recovery_evaluation_queue_depth")).toBe(0);
    await redis.start();
    await redis.ask("XADD", doors.stream, "*", "candidate_id", "c-1");
    await until("the stream is read", async () => (await doors.depth().catch(() => null))?.consumers === 1, 60_000);
    const found = await scrape(probes.url);
    expect(found.value("makegood_source_up", source)).toBe(1);
    // Taken or not yet: known now, so it is a number.
    expect(found.value("recovery_stream_length")).toBeLessThanOrEqual(1);
    expect(found.value("recovery_stream_consumers")).toBe(1);
    expect(found.value("makegood_stream_pending", `{stream="${doors.stream}"}`)).toBeLessThanOrEqual(1);
    await doors.stop();
    expect((await scrape(probes.url)).value("makegood_source_up", source)).toBeUndefined();
    await mg.close();
    await redis.stop();
  });
});

describe("what is not known", PATIENT, () => {
  /** Of the whole system: they need an answer of the store. */
  const SYSTEM = Object.entries<Metric>(METRICS).flatMap(([name, { from, alias }]) =>
    from === "store" || from === "source" ? [name, ...(alias ? [alias] : [])] : [],
  );

  it("is absent and never 0: PostgreSQL is down and 30 records lie in the journal (makegood_audit_pending said 0)", async () => {
    await using proxy = await startProxy(targetOf(databaseUrl()));
    proxy.refuse();
    const directory = await mkdtemp(join(tmpdir(), "makegood-metrics-"));
    const store = createPostgresStore({ url: proxy.via(databaseUrl()), schema: schema() });
    const journal = { directory };
    const mg = await createMakegood({ store, journal, startsWithoutStore: true, openWithinMs: 50, log: "silent" });
    await using probes = await startProbes(mg, { port: 0 });
    for (let n = 0; n < 30; n++) await mg.deliver("audit/executions", { n }, { timeoutMs: 50 });
    const down = await scrape(probes.url);
    expect(down.value("makegood_store_up")).toBe(0);
    expect(down.value("makegood_held_below", '{place="journal",state="waiting"}')).toBe(30);
    expect(down.value("makegood_held_below_oldest_seconds", '{place="journal"}')).toBeGreaterThan(0);
    expect(down.value("makegood_ladder_primary_up")).toBe(0);
    expect(SYSTEM.filter((name) => down.sampled.has(name))).toEqual([]);
    expect(down.sampled).not.toContain("makegood_levels_age_seconds");
    expect(down.value("makegood_source_up", '{source="groups"}')).toBe(0);

    proxy.heal();
    await until("the counts are known", async () => (await scrape(probes.url)).value("makegood_audit_pending") !== undefined);
    await mg.close();
    await rm(directory, { recursive: true, force: true });
  });
});
