/**
 * POST /api/v1/audit/<type> through a real socket on a real database: each answer, what is stored for it, and what the metrics say.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createMakegood } from "../../src/create.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { auditTopics, quarantineSink } from "../../src/presets/audit/topics.ts";
import { readAuditEntry } from "../../src/presets/seed-streams.ts";
import { makegoodOptions } from "../../src/server/serve.ts";
import { createMemoryAudit } from "../../src/store/memory/audit.ts";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { createRedisStore } from "../../src/store/redis/index.ts";
import { configOf, startTestServer } from "../server/support.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { startCli } from "../support/processes.ts";
import { startRedis } from "../support/redis-server.ts";
import { DATA, envelope, TYPES } from "./records.ts";
import { type AuditServer, startAuditServer } from "./support.ts";

const json = async (response: Response) => (await response.json()) as Record<string, unknown>;

describe("the audit endpoints", () => {
  let server: AuditServer;
  beforeAll(async () => {
    server = await startAuditServer();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it.each(TYPES)("%s: 201 once, 200 after that, the exact text kept", async (type) => {
    const text = `{ "later" : 12345678901234567890.10, ${JSON.stringify(envelope(`e-${type}`, type)).slice(1)}`;
    const first = await server.post(type, text);
    expect([first.status, await json(first)]).toEqual([201, { event_id: `e-${type}`, status: "stored" }]);
    const second = await server.post(type, text);
    expect([second.status, await json(second)]).toEqual([200, { event_id: `e-${type}`, status: "duplicate" }]);
    expect((await server.stored()).get(`e-${type}`)).toBe(text);
    expect(await server.metric(new RegExp(`audit_write_attempts_total.*"${type}".*"success"`))).toBe(2);
  });

  it("422 for an event id that names another record, which is kept as a dead letter", async () => {
    expect((await server.post("executions", envelope("e-conflict"))).status).toBe(201);
    const response = await server.post("executions", envelope("e-conflict", "executions", { outcome: "failure" }));
    expect([response.status, await json(response)]).toMatchObject([422, { code: "key_conflict", quarantined: true }]);
    const { data } = await server.mg().store.list({ status: "dead", topic: "audit/executions", limit: 10 });
    expect(data.map(({ lastCode, key }) => [lastCode, key])).toEqual([["event_conflict", "e-conflict"]]);
  });

  it("DA-8, DA-15: 400 names every fault, and the record is a dead letter with its whole text", async () => {
    const body = { ...envelope("e-bad", "ai-decisions"), data: { confidence: 7 }, secret: "kept" };
    const response = await server.post("ai-decisions", body);
    expect([response.status, await json(response)]).toMatchObject([
      400,
      { code: "invalid_payload", quarantined: true, errors: [{ field: "data.fingerprint" }, { field: "data.confidence" }] },
    ]);
    await server.post("ai-decisions", body);
    const { data } = await server.mg().store.list({ status: "dead", topic: "audit/quarantine", limit: 10 });
    expect(data.length).toBe(1);
    expect(JSON.parse(data[0]!.payload)).toMatchObject({ audit_type: "ai-decisions", record: JSON.stringify(body) });
    // The call itself was the try that ended it; the worker has not added one.
    expect(data[0]!.attempts).toBe(0);
    expect(await server.metric(/audit_write_attempts_total.*"ai-decisions".*"validation_error"/)).toBe(2);
    // Counts of the store are at most five seconds old.
    await vi.waitFor(async () => expect(await server.metric(/audit_dead_letters /)).toBeGreaterThanOrEqual(1), 8_000);
  });

  it("400 and quarantined for what is not even JSON", async () => {
    const response = await server.post("notifications", '{"event_id": "half');
    expect([response.status, await json(response)]).toMatchObject([400, { quarantined: true }]);
    const { data } = await server.mg().store.list({ status: "dead", topic: "audit/quarantine", limit: 10 });
    expect(data.some(({ payload }) => payload.includes("half"))).toBe(true);
  });

  it("DA-15: 400 and quarantined however large: what has no room beside its reason is kept as it came, and judged again by a replay", async () => {
    const text = JSON.stringify({ ...envelope("e-large", "executions"), outcome: 7, quotes: '"'.repeat(400_000) });
    const response = await server.post("executions", text);
    const { message_id, ...answer } = (await json(response)) as { message_id: string };
    expect([response.status, answer]).toMatchObject([400, { quarantined: true, errors: [{ field: "outcome" }] }]);
    expect(await server.mg().store.get(message_id)).toMatchObject({ status: "dead", payload: text, lastCode: "invalid_record" });
    const sink = quarantineSink(createMemoryAudit());
    const fits = JSON.stringify(envelope("e-fits", "executions"));
    const sent = { key: `as-it-came:executions:${"0".repeat(64)}`, payload: fits };
    const context = { signal: new AbortController().signal, timeoutMs: 1_000 };
    expect(await sink.deliver(sent as Parameters<typeof sink.deliver>[0], context)).toEqual({ kind: "delivered" });
  });

  it.each(TYPES)("N13: %s in the seed's own shape is wrapped as on the stream, once for each id and text", async (type) => {
    const text = ` { "id" : "seed-${type}", "big" : 12345678901234567890.10, ${JSON.stringify(DATA[type]).slice(1)}`;
    const first = await server.post(type, text);
    const { event_id } = (await json(first)) as { event_id: string };
    expect(first.status).toBe(201);
    expect((await server.stored()).get(event_id)).toContain(`"data":${text}}`);
    const { data } = readAuditEntry("audit-dlq", { id: "1-1", fields: { audit_type: type, audit_data: text } }).payloadText.match(
      /(?<data>"data":.*)$/s,
    )!.groups as { data: string };
    expect((await server.stored()).get(event_id)?.endsWith(data)).toBe(true);
    const second = await server.post(type, text);
    expect([second.status, await json(second)]).toEqual([200, { event_id, status: "duplicate" }]);
    expect((await server.post(type, text.replace("12345", "54321"))).status).toBe(201);
    // The event id of such a record on another one is a contradiction.
    const forged = await server.post(type, envelope(event_id, type));
    expect([forged.status, await json(forged)]).toMatchObject([422, { code: "key_conflict" }]);
  });

  it("N13: the seed's shape without what its type needs: 400 says what is missing, and a replay after a fix stores it", async () => {
    const response = await server.post("ai-decisions", { id: "an-9", confidence: 0.5 });
    expect([response.status, await json(response)]).toMatchObject([400, { errors: [{ field: "data.fingerprint" }] }]);
    const record = JSON.stringify({ id: "an-9", ...DATA["ai-decisions"] });
    const payload = { audit_type: "ai-decisions", reason: "x", record };
    const { id } = await server.mg().enqueue("audit/quarantine", payload);
    await vi.waitFor(async () => expect(await server.mg().store.get(id)).toMatchObject({ status: "delivered" }), 10_000);
    expect([...(await server.stored()).values()].some((text) => text.endsWith(`"data":${record}}`))).toBe(true);
  });

  it("DA-26: 413 above a mebibyte, 415 for another media type, 404 for a type nobody registered", async () => {
    expect((await server.post("executions", { ...envelope("big"), big: "x".repeat(1_100_000) })).status).toBe(413);
    const xml = await fetch(`${server.url}/api/v1/audit/executions`, { method: "POST", body: "<x/>" });
    expect(xml.status).toBe(415);
    expect((await server.post("ai_analysis", envelope("x"))).status).toBe(404);
  });

  it("DA-10, DA-15: a quarantined record is stored by a replay once it fits", async () => {
    const text = JSON.stringify(envelope("e-fixed", "effectiveness"));
    // As a server before the fix has left it: the text is fine for today's rules.
    const { id } = await server.mg().enqueue("audit/quarantine", { audit_type: "effectiveness", reason: "x", record: text });
    await vi.waitFor(async () => expect((await server.stored()).get("e-fixed")).toBe(text), 5_000);
    await vi.waitFor(async () => expect(await server.mg().store.get(id)).toMatchObject({ status: "delivered" }), 5_000);
  });

  it("a record that is enqueued directly is judged at the door (EV-19)", async () => {
    await expect(server.mg().enqueue("audit/executions", { nothing: 1 })).rejects.toMatchObject({
      code: "payload_rejected_by_schema",
    });
  });
});

describe("while the database fails", () => {
  it("DA-16: 503 with Retry-After when nothing durable takes the record, and nothing is claimed", async () => {
    await using server = await startAuditServer();
    server.databaseDown();
    const response = await server.post("executions", envelope("e-1"));
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "2"]);
    expect(await json(response)).toMatchObject({ code: "store_unavailable" });
    expect(await server.metric(/audit_write_attempts_total.*"executions".*"failed"/)).toBe(1);
    server.databaseUp();
    // 201: stored by this call. 200: what memory still held of the first one was stored meanwhile.
    await vi.waitFor(async () => expect([200, 201]).toContain((await server.post("executions", envelope("e-1"))).status), 15_000);
    expect([...(await server.stored()).keys()]).toEqual(["e-1"]);
  });

  it("EV-15: 202 when the queue takes it, stored once the database is back, across a restart", async () => {
    const directory = await mkdtemp(join(tmpdir(), "makegood-audit-"));
    await using server = await startAuditServer({ journal: { directory } });
    server.databaseDown();
    const texts = new Map(Array.from({ length: 10 }, (_, i) => [`e-${i}`, JSON.stringify(envelope(`e-${i}`), null, i % 3)]));
    for (const [eventId, text] of texts) {
      const response = await server.post("executions", text);
      expect([response.status, await json(response)]).toMatchObject([202, { event_id: eventId, status: "queued" }]);
    }
    expect(await server.metric(/audit_write_attempts_total.*"executions".*"fallback"/)).toBe(10);
    expect(await server.metric(/audit_write_failures_total.*"executions"/)).toBe(10);
    // N13: in the seed's shape, twice: one record.
    for (let i = 0; i < 2; i++) expect((await server.post("executions", { id: "s-1", workflow: "w" })).status).toBe(202);
    await server.stop();
    server.databaseUp();
    await server.start();
    await vi.waitFor(async () => expect((await server.stored()).size).toBe(11), { timeout: 20_000, interval: 100 });
    expect(new Map([...(await server.stored())].filter(([eventId]) => texts.has(eventId)))).toEqual(texts);
    await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  });
});

describe("with Redis as the second rung", () => {
  it("DA-16, EV-15: 202 while only Redis lives, 503 when both are down, and everything is stored afterwards", async () => {
    const redis = await startRedis();
    const secondary = createRedisStore({ redis: redis.url, prefix: "audit" });
    await using server = await startAuditServer({ secondary });
    server.databaseDown();
    const queued = await server.post("executions", envelope("e-1"));
    expect([queued.status, await json(queued)]).toMatchObject([202, { status: "queued" }]);
    await redis.stop("SIGKILL");
    expect((await server.post("executions", envelope("e-2"))).status).toBe(503);
    await redis.start();
    server.databaseUp();
    // e-2 was not claimed to be safe; what memory still holds of it may arrive all the same.
    const moved = async () => expect((await server.stored()).has("e-1")).toBe(true);
    await vi.waitFor(moved, { timeout: 45_000, interval: 200 });
    await redis.stop();
  }, 60_000);
});

describe("stores without audit records", () => {
  it("answer 501 needs_postgres, and serve says so at start", async () => {
    const server = await startTestServer({}, { store: createMemoryStore() });
    const response = await server.send("POST", "/api/v1/audit/executions", envelope("e-1"));
    expect([response.status, await json(response)]).toMatchObject([501, { code: "needs_postgres" }]);
    expect(server.lines.some((line) => line.includes("needs_postgres"))).toBe(true);
    await server.close({ drainMs: 0 });
  });
});

describe("a worker of its own", () => {
  it("makegood work --topics audit/* writes what another process queued (AUD-18, CON-39)", async () => {
    const schema = freshSchema();
    const store = createPostgresStore({ url: databaseUrl(), schema });
    const mg = await createMakegood({ store, topics: auditTopics(store.audit) });
    for (const type of TYPES) await mg.enqueue(`audit/${type}`, envelope(`w-${type}`, type), { key: `w-${type}` });
    const env = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema, MAKEGOOD_POLL_MS: "50" };
    const worker = await startCli(["work", "--topics", "audit/*"], env);
    await vi.waitFor(async () => expect((await store.audit.list({ limit: 100 })).records.length).toBe(TYPES.length), 20_000);
    expect(await worker.end("SIGTERM")).toMatchObject({ code: 0 });
    await mg.close();
    await dropSchema(schema);
  }, 60_000);
});

describe("serve", () => {
  it("keeps records for seven years unless told otherwise, and says so when it is less", async () => {
    const store = createPostgresStore({ url: databaseUrl(), schema: freshSchema() });
    const keptMs = async (env: Record<string, string>) => makegoodOptions(await configOf(env), store, systemClock).auditKeptMs;
    expect(await keptMs({})).toBe(2_557 * 86_400_000);
    expect(await keptMs({ MAKEGOOD_AUDIT_KEPT_DAYS: "30" })).toBe(30 * 86_400_000);
    expect(await keptMs({ MAKEGOOD_AUDIT_KEPT_DAYS: "forever" })).toBeNull();
  });

  it("AUD-14, N13: what was queued is written at a rate; requests are not held to it, and are stored at once", async () => {
    await using server = await startAuditServer();
    const queued = Array.from({ length: 60 }, (_, i) => ({ payload: envelope(`q-${i}`), key: `q-${i}` }));
    const startMs = performance.now();
    await server.mg().enqueueMany("audit/executions", queued);
    const posted = await Promise.all(Array.from({ length: 40 }, (_, i) => server.post("executions", envelope(`p-${i}`))));
    expect(new Set(posted.map(({ status }) => status))).toEqual(new Set([201]));
    await vi.waitFor(async () => expect((await server.stored()).size).toBe(100), { timeout: 30_000, interval: 50 });
    // One second's worth at once, the other forty at twenty a second.
    expect(performance.now() - startMs).toBeGreaterThan(1_500);
  });

  it("EV-18: its own worker writes what is queued for every type", async () => {
    const schema = freshSchema();
    const store = createPostgresStore({ url: databaseUrl(), schema });
    const server = await startTestServer({ MAKEGOOD_POLL_MS: "50", MAKEGOOD_AUDIT_KEPT_DAYS: "30" }, { store });
    expect(server.lines.some((line) => line.includes("kept for less than seven years"))).toBe(true);
    for (const type of TYPES) await server.mg.enqueue(`audit/${type}`, envelope(`q-${type}`, type), { key: `q-${type}` });
    await vi.waitFor(async () => expect((await store.audit.list({ limit: 100 })).records.length).toBe(TYPES.length), 10_000);
    const text = await (await server.api("/metrics")).text();
    expect(text).toMatch(/makegood_audit_retry_duration_seconds_bucket\{le="604800",audit_type="executions"\} 1/);
    await server.close({ drainMs: 500 });
    await dropSchema(schema);
  });
});
