/**
 * Every declared metric has been seen with a number: a server, a worker with its fallback ladder and a Makegood on Redis are driven into each
 * situation that a metric is there for, and scraped. What no situation brings about would be a promise on a page.
 */
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createMakegood, topic } from "../../src/index.ts";
import { createLocks } from "../../src/maintenance/locks.ts";
import { METRICS, type Metric, metricNames } from "../../src/observe/table.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { startRecoveryStream } from "../../src/presets/index.ts";
import { startProbes } from "../../src/server/index.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { createRedisStore } from "../../src/store/redis/index.ts";
import { RECOVERY_STREAM } from "../../src/store/redis/streams/seed-names.ts";
import { envelope } from "../audit/records.ts";
import { provenanceRows } from "../maintenance/scene.ts";
import { startRecoveryServer, TOKENS } from "../server/recovery-support.ts";
import { databaseUrl, dropSchema, freshSchema, withClient } from "../support/postgres.ts";
import { until, workspace } from "../support/processes.ts";
import { NOT_PERSISTENT, startRedis } from "../support/redis-server.ts";
import { startProxy, targetOf } from "../support/tcp-proxy.ts";
import { scrape } from "./scrape.ts";

/** Gauges seen with a number, and counters and histograms that counted something, in any process. */
const seen = new Set<string>();
/** They need servers with TLS: test/observe/expiry.test.ts has them. */
const ELSEWHERE = ["makegood_certificate_expires_timestamp_seconds", "makegood_store_certificate_expires_timestamp_seconds"];
const schemas: string[] = [];
const AUTH = { authorization: `Bearer ${TOKENS.alice}` };
const PATIENT = { timeout: 120_000 };

afterAll(async () => {
  for (const schema of schemas.splice(0)) await dropSchema(schema);
});

async function look(url: string, headers: Record<string, string> = {}): Promise<ReadonlySet<string>> {
  const { counted } = await scrape(url, headers);
  for (const name of counted) seen.add(name);
  return counted;
}

/** Scrapes until all of these have a number; what is missing is named. */
async function lookFor(names: readonly string[], url: string, headers: Record<string, string> = {}): Promise<void> {
  await expect
    .poll(
      async () => {
        const found = await look(url, headers);
        return names.filter((name) => !found.has(name));
      },
      { timeout: 30_000, interval: 100 },
    )
    .toEqual([]);
}

const queryIn =
  (schema: string) =>
  (text: string, values: unknown[] = []) =>
    withClient(async (client) => {
      await client.query(`set search_path = "${schema}"`);
      return (await client.query(text, values)).rows as never[];
    });

describe("a number for every metric", PATIENT, () => {
  it("of a server: delivery, recovery, audit, settlement, jobs and evidence", async () => {
    const tokens = Object.entries(TOKENS).map(([name, secret]) => `${name}:${secret};expires=2100-01-31`);
    const scene = await startRecoveryServer({ MAKEGOOD_TOKENS: tokens.join(",") });
    const { server, receiver } = scene;
    const { mg, url } = server;
    const send = async (method: string, path: string, body: unknown = {}) => {
      const answer = await scene.as("alice", method, `/api/v1${path}`, body);
      return { ...answer, path };
    };
    const post = (name: string, payload: unknown, more = {}) => send("POST", "/messages", { topic: name, payload, ...more });
    const sink = { kind: "http", url: receiver.url };

    // A group with a suggestion that waits, one redrive that is done, and failures from outside, one of them twice.
    const { group, ids } = await scene.deadGroup("shop/orders", 2);
    receiver.status = 200;
    const redrive = { select: { ids: [ids[0]] }, reason: "mended", canary: 0 };
    expect(await send("POST", "/redrives", redrive)).toMatchObject({ status: 201 });
    const failure_payload = { workflow_name: "shop/orders", error_type: "E1", error_message: "no" };
    const told = { failure_match_id: crypto.randomUUID(), failure_payload, idempotency_key: "once" };
    for (const status of [201, 200]) expect(await send("POST", "/recovery/ingest", told)).toMatchObject({ status });
    expect(group.group_id).toBeDefined();

    // Two of one key, one that waits, one that a person decided on, and a receiver that wants nothing any more.
    await send("PUT", "/topics/shop/held", { sink, paused: true });
    for (let n = 0; n < 2; n++) await post("shop/held", 1, { key: "k" });
    await send("POST", `/messages/${ids[1]}/resolve`, { reason: "by hand" });
    await send("PUT", "/topics/billing/finalize", { sink, paused: true });
    await post("billing/finalize", { reservation_id: "r" });
    receiver.status = 410;
    const secrets = ["whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"];
    await send("PUT", "/topics/shop/gone", { sink: { kind: "webhook", url: receiver.url, secrets } });
    await post("shop/gone", 1);
    await send("PUT", "/topics/recovery/notify", { sink });
    await post("recovery/notify", { text: "look" });
    await lookFor(["makegood_sinks_disabled_total", "m10_outbox_failed_total"], url, AUTH);
    receiver.status = 503;
    await send("PUT", "/topics/shop/broken", { sink });
    for (let n = 0; n < 8; n++) await post("shop/broken", n);

    // Audit: written at once, queued and written later, refused, and dead.
    await send("POST", "/audit/executions", envelope("e-1"));
    await send("POST", "/audit/executions", { event_id: "e-2" });
    await mg.enqueueText([{ topic: "audit/executions", payloadText: JSON.stringify(envelope("e-3")) }]);
    await mg.store.enqueue([{ ...RAW, id: createIds()(), topic: "audit/executions", payload: '{"event_id":"e-4"}' }]);

    // Jobs by hand: one that runs, one that another process is at, and a lock that ended under its holder.
    await mg.jobs.run("seal-evidence");
    await send("POST", "/verify");
    await mg.store.lead("job:clean-locks", "another process", 60_000);
    expect(await mg.jobs.run("clean-locks")).toMatchObject({ result: "skipped" });
    const lock = await createLocks(mg.store, "slow", mg).acquire("view", 1);
    await until("it ran out", async () => (await mg.store.lead("view", "quick", 60_000)).held);
    expect(await lock?.extend()).toBe(false);

    const expected = of(/^(recovery_|m10_outbox|makegood_(audit|billing|evidence|conservation|groups|candidates|lock|redrive))/);
    const elsewhere = /stream|duplicates$/;
    await lookFor(["makegood_breaker_trips_total", ...expected.filter((name) => !elsewhere.test(name))], url, AUTH);
    await scene.close();
  });

  it("of a worker: claims that are lost, retention, and everything that lies below a store that is away", async () => {
    const schema = freshSchema();
    schemas.push(schema);
    const query = queryIn(schema);
    const directory = await workspace();
    await using proxy = await startProxy(targetOf(databaseUrl()));
    let finish = (): void => undefined;
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const topics = [
      topic("a/ok", { sink: () => undefined }),
      topic("a/slow", { sink: () => finished, leaseMs: 60_000 }),
      topic("a/bad", { sink: () => ({ kind: "reject", code: "no", error: "no" }) }),
      topic("a/unserved", { sink: () => ({ kind: "unserved", code: "not_here", error: "not here" }) }),
      topic("a/later", { sink: () => ({ kind: "retry", code: "later", error: "later" }), retry: { baseMs: 300_000 } }),
    ];
    const open = () =>
      createMakegood({
        ...{ log: "silent", topics, pollMs: 50, keptMs: 0, retention: { dead: 0 }, journal: { directory } },
        store: createPostgresStore({ url: proxy.via(databaseUrl()), schema }),
      });
    const mg = await open();
    await using probes = await startProbes(mg, { port: 0 });

    // Claimed by a process that ended: its lease is taken over.
    const { id } = await mg.enqueue("a/ok", 1);
    const [claimed] = await mg.store.claim({ owner: "gone", leaseMs: 1_000, lanes: [], ids: [id] });
    expect(claimed?.id).toBe(id);
    mg.work();
    await mg.enqueue("a/unserved", 1);
    const slow = await mg.enqueue("a/slow", 1);
    await lookFor(["makegood_unserved_total", "makegood_reclaimed_total"], probes.url);
    await until("it is being delivered", async () => (await mg.get(slow.id))?.status === "processing");
    await query("delete from lease where ids @> array[$1::uuid]", [slow.id]);
    finish();
    await lookFor(["makegood_claim_lost_total"], probes.url);

    // What ended and is old enough goes, archived where it was not delivered.
    const yesterday = createIds({ ...systemClock, wallMs: () => systemClock.wallMs() - 86_400_000 });
    const bad = yesterday();
    // Where nothing is kept, the worker's own run may be taking that day out at this moment.
    const taken = () => mg.enqueue("a/bad", 1, { id: bad }).catch(() => null);
    await until("its day is there", async () => (await taken()) !== null);
    await until("it died", async () => (await mg.get(bad))?.status === "dead");
    await mg.discard(bad, { actor: "ann", reason: "not owed" });
    await provenanceRows({ sql: query as never }, 1, 100);
    // The worker's own run may have been quicker: it is counted all the same.
    expect((await mg.jobs.run("prune-settled")).error).toBeNull();
    await mg.jobs.run("retire-provenance");

    // The store is away: what is delivered meanwhile lies in the journal, one under a key that is there, one that contradicts it.
    await mg.deliver("a/later", 1, { key: "same" });
    await mg.deliver("a/later", 1, { key: "other" });
    proxy.refuse();
    proxy.resetAll();
    await mg.deliver("a/later", 1, { key: "same" });
    await mg.deliver("a/later", 2, { key: "other" });
    await lookFor(["makegood_store_errors_total", "makegood_held_below_oldest_seconds"], probes.url);
    proxy.heal();
    await until("what lay below is up", async () => (await mg.ladder.drain()).left === 0);
    await look(probes.url);
    await mg.close();

    // A file of the journal with half a record at its end.
    const [file] = (await readdir(directory)).filter((name) => !name.includes("lock"));
    await writeFile(join(directory, file as string), Buffer.from([1, 2, 3]), { flag: "a" });
    const again = await open();
    await using read = await startProbes(again, { port: 0 });
    await look(read.url);
    await again.close();
  });

  it("of a Redis that is not durable and lost its data, and of a stream with a consumer that died", async () => {
    const redis = await startRedis(NOT_PERSISTENT);
    const store = createRedisStore({ redis: redis.url, allowEviction: null });
    const mg = await createMakegood({ store, log: "silent", topics: [topic("a/b", { sink: () => undefined })] });
    await using probes = await startProbes(mg, { port: 0 });
    const quick = { silentMs: 1, sweepMs: 50 };
    const doors = startRecoveryStream({ mg, redis: redis.url, ...quick });
    const died = ["XGROUP", "CREATECONSUMER", doors.stream, RECOVERY_STREAM.group, "died"];
    await until("there is a group for it", () => redis.ask(...died).then(Boolean, () => false));
    await lookFor(["m10_reclaim_gc_cleaned_total"], probes.url);
    await redis.ask("FLUSHALL");
    await mg.enqueue("a/b", 1);
    await lookFor(["makegood_store_data_lost_total", "makegood_findings"], probes.url);
    await doors.stop();
    await mg.close();
    await redis.stop();
  });

  it("CON-26, DR-37: none is left", () => {
    expect(metricNames().filter((name) => !seen.has(name) && !ELSEWHERE.includes(name))).toEqual([]);
  });
});

const of = (pattern: RegExp): string[] => Object.entries<Metric>(METRICS).flatMap(([name]) => (pattern.test(name) ? [name] : []));

const RAW = {
  ...{ tenantId: null, key: null, payloadHash: "", delayMs: 0, priority: 0, orderingKey: null },
  ...{ traceparent: null, schemaVersion: null },
};
