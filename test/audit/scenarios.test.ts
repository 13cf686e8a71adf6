/**
 * The seed's five failure scenarios, AUD-20 to AUD-24, from the producer's side: a real client, a real server, a real database, and
 * a real network between them. After each: nothing lost, nothing twice, and no write threw or took longer than its budget.
 */
import { describe, expect, it, vi } from "vitest";
import { type AuditClient, type AuditClientOptions, createAuditClient } from "../../src/presets/audit/client.ts";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { startProxy, targetOf } from "../support/tcp-proxy.ts";
import { DATA, envelope } from "./records.ts";
import { type AuditServer, QUICK, startAuditServer } from "./support.ts";

vi.setConfig({ testTimeout: 60_000 });

const BUDGET_MS = 4_000;

function client(url: string, options: Partial<AuditClientOptions> = {}): AuditClient {
  return createAuditClient({
    url,
    timeoutMs: 1_000,
    budgetMs: BUDGET_MS,
    retry: QUICK,
    pollMs: 100,
    actor: "test",
    errorLog: () => {},
    ...options,
  });
}

/** Every write ends, with a value, in time. */
async function timed<T>(work: Promise<T>): Promise<T> {
  const startMs = performance.now();
  const result = await work;
  expect(performance.now() - startMs).toBeLessThan(BUDGET_MS + 2_000);
  return result;
}

/** Its own store is open: making the tables may take longer than a write waits for it. */
const opened = (audit: AuditClient) =>
  vi.waitFor(async () => expect((await audit.makegood()) === null).toBe(false), { timeout: 20_000 });

const storedAll = (server: AuditServer, ids: readonly string[]) =>
  vi.waitFor(async () => expect([...(await server.stored()).keys()].sort()).toEqual([...ids].sort()), {
    timeout: 30_000,
    interval: 100,
  });

describe("the five scenarios", () => {
  it("AUD-20: a transient network error: a few quick tries, then the queue, then stored", async () => {
    await using server = await startAuditServer();
    await using network = await startProxy(targetOf(server.url));
    await using audit = client(`http://127.0.0.1:${network.port}`);
    expect((await timed(audit.execution(envelope("before") as never))).kind).toBe("stored");
    // The server acts and its answer is lost, once: the second quick try finds its own record. On a slow machine the 300 ms that
    // quick tries have may be over before that; then the queue's does, and another record is asked.
    const lost: string[] = [];
    for (let kind = ""; kind !== "duplicate"; ) {
      expect(lost.length).toBeLessThan(10);
      network.rule({ match: /POST/, act: "lose-reply", answered: "HTTP/1.1 201" });
      lost.push(`lost-answer-${lost.length}`);
      ({ kind } = await timed(audit.execution(envelope(lost.at(-1)!) as never)));
      expect(["duplicate", "queued"]).toContain(kind);
    }
    network.refuse();
    network.resetAll();
    const results = await Promise.all(["a", "b", "c"].map((id) => timed(audit.execution(envelope(id) as never))));
    expect(results.map(({ kind }) => kind)).toEqual(["queued", "queued", "queued"]);
    network.heal();
    await storedAll(server, ["before", ...lost, "a", "b", "c"]);
    await vi.waitFor(async () => expect(await audit.pending()).toBe(0), 5_000);
    expect(await audit.deadLetters()).toBe(0);
  });

  it("AUD-21: the service is down: queued at once, stored when it is back, across a restart of the producer", async () => {
    await using server = await startAuditServer();
    const schema = freshSchema();
    const stores: ReturnType<typeof createPostgresStore>[] = [];
    const own = () => {
      stores.push(createPostgresStore({ url: databaseUrl(), schema }));
      return stores.at(-1)!;
    };
    const first = client(server.url, { store: own() });
    await opened(first);
    await server.stop();
    const ids = Array.from({ length: 100 }, (_, i) => `e-${i}`);
    const results = await Promise.all(ids.map((id) => timed(first.aiDecision(envelope(id, "ai-decisions") as never))));
    expect(new Set(results.map(({ kind, survives }) => `${kind} ${survives}`))).toEqual(new Set(["queued power-loss"]));
    expect(await first.close({ drainMs: 500 })).toEqual({ pending: 100 });
    // N7: the store is the caller's, and so is its end.
    await stores[0]?.check();
    await server.start();
    const second = client(server.url, { store: own() });
    await storedAll(server, ids);
    expect(await second.deadLetters()).toBe(0);
    await second.close();
    for (const store of stores) await store.close();
    await dropSchema(schema);
  });

  it("AUD-22: an invalid record is quarantined with its text and never sent; a valid one beside it is not held up", async () => {
    await using server = await startAuditServer();
    await using audit = client(server.url);
    const bad = await timed(audit.write("ai_analysis", { ...envelope("bad"), data: { fingerprint: 5 } } as never));
    expect(bad).toMatchObject({ kind: "quarantined", eventId: "bad", code: "invalid_record" });
    expect(bad.error).toMatch(/data\.fingerprint .*data\.confidence/);
    expect((await timed(audit.write("no-such-type", envelope("odd")))).kind).toBe("quarantined");
    for (const nothing of [null, 7, "text", []])
      expect((await timed(audit.write("executions", nothing as never))).kind).toBe("quarantined");
    const circular: Record<string, unknown> = envelope("circular");
    circular.data = circular;
    expect((await timed(audit.write("executions", circular as never))).kind).toBe("logged");
    expect(
      (await timed(audit.execution({ correlation_id: "c", resource: "r", outcome: "ok", data: { workflow: "w" } }))).kind,
    ).toBe("stored");
    expect(await audit.deadLetters()).toBe(6);
    const mg = (await audit.makegood())!;
    const { data } = await mg.store.list({ status: "dead", limit: 20 });
    const kept = data.map(({ payload }) => JSON.parse(payload) as { audit_type: string; record: string });
    expect(JSON.parse(kept.find(({ audit_type }) => audit_type === "ai-decisions")!.record)).toMatchObject({
      event_id: "bad",
      data: { fingerprint: 5 },
    });
    expect((await server.stored()).size).toBe(1);
    // DA-10: one that an older release of the client refused, and that fits by now, is sent by a replay.
    const mended = { audit_type: "executions", reason: "x", record: JSON.stringify(envelope("mended")) };
    await mg.enqueue("audit-write/quarantine", mended);
    await vi.waitFor(async () => expect((await server.stored()).get("mended")).toBe(mended.record), 10_000);
    // What a server refuses although the client let it through: another text under a known event id.
    await timed(audit.execution(envelope("twice") as never));
    const other = await timed(audit.execution(envelope("twice", "executions", { outcome: "failure" }) as never));
    expect(other).toMatchObject({ kind: "quarantined", code: "http_422" });
  });

  it("AUD-23: the database is full: 507, queued at the producer, stored when there is room again", async () => {
    await using server = await startAuditServer();
    await using audit = client(server.url);
    await opened(audit);
    await server.databaseFull(true);
    const direct = await server.post("executions", envelope("direct"));
    expect([direct.status, direct.headers.get("retry-after")]).toEqual([507, "2"]);
    const ids = ["a", "b", "c", "d", "e", "f", "g"];
    const answers = [];
    for (const id of ids) answers.push(await timed(audit.execution(envelope(id) as never)));
    expect(answers.map(({ kind }) => kind)).toEqual(ids.map(() => "queued"));
    // The service says why, until its own breaker (503) or the producer's knows it.
    expect(answers[0]?.code).toBe("http_507");
    for (const { code } of answers) expect(["http_507", "http_503", "breaker_open"]).toContain(code);
    expect(await audit.deadLetters()).toBe(0);
    await server.databaseFull(false);
    await storedAll(server, ["direct", ...ids]);
  });

  it("AUD-24, DA-1, DA-3: more than ten thousand wait and none is evicted; with both stores down a write still ends", async () => {
    await using server = await startAuditServer();
    await server.stop();
    await using audit = client(server.url, { store: createMemoryStore(), work: false });
    await opened(audit);
    const count = 10_200;
    for (let from = 0; from < count; from += 200) {
      const batch = Array.from({ length: 200 }, (_, i) =>
        audit.notification(envelope(`e-${from + i}`, "notifications") as never),
      );
      expect((await Promise.all(batch)).every(({ kind }) => kind === "queued")).toBe(true);
    }
    expect(await audit.pending()).toBe(count);

    // DA-17: a producer starts although neither the service nor its own store is there.
    const nowhere = createPostgresStore({ url: "postgres://nobody:x@127.0.0.1:1/none", connectTimeoutMs: 500 });
    const alone = client(server.url, { store: nowhere });
    const result = await timed(alone.write("executions", envelope("alone")));
    expect(result).toMatchObject({ kind: "queued", survives: "nothing" });
    await server.start();
    // On a slow machine the 300 ms that quick tries have may be over first: then it is queued, and stored below.
    expect(["stored", "queued"]).toContain((await timed(alone.write("executions", envelope("later")))).kind);
    // What only memory holds is tried from there.
    await storedAll(server, ["alone", "later"]);
    expect(await alone.close({ drainMs: 100 })).toEqual({ pending: 0 });
  });
});

describe("the client", () => {
  it("has one helper for each type, and fills in what is absent", async () => {
    await using server = await startAuditServer();
    await using audit = client(server.url);
    const base = { correlation_id: "c", resource: "r", outcome: "ok" };
    const kinds = [
      await audit.orchestration({ ...base, data: DATA.orchestration as never }),
      await audit.signalProcessing({ ...base, data: DATA["signal-processing"] as never }),
      await audit.aiDecision({ ...base, data: DATA["ai-decisions"] as never }),
      await audit.execution({ ...base, data: DATA.executions as never }),
      await audit.notification({ ...base, data: DATA.notifications as never }),
      await audit.effectiveness({ ...base, data: DATA.effectiveness as never }),
    ].map(({ kind }) => kind);
    expect(kinds).toEqual(Array(6).fill("stored"));
    const texts = [...(await server.stored()).values()];
    expect(texts).toHaveLength(6);
    for (const text of texts) {
      expect(JSON.parse(text)).toMatchObject({ event_id: expect.any(String), occurred_at: expect.any(String), actor: "test" });
    }
  });

  it("keeps both when two records with one event id wait, and says which one came second", async () => {
    await using server = await startAuditServer();
    await using audit = client(server.url);
    await opened(audit);
    await server.stop();
    expect((await audit.write("executions", envelope("same"))).kind).toBe("queued");
    const second = await audit.write("executions", envelope("same", "executions", { outcome: "failure" }));
    expect(second.kind).toBe("queued");
    expect(await audit.pending()).toBe(2);
    await server.start();
    await vi.waitFor(async () => expect([await audit.pending(), await audit.deadLetters()]).toEqual([0, 1]), 20_000);
    expect((await server.stored()).size).toBe(1);
  });

  it("DA-22: closes within its drain although the service hangs, and says what is left", async () => {
    await using server = await startAuditServer();
    await using network = await startProxy(targetOf(server.url));
    const audit = client(`http://127.0.0.1:${network.port}`, { timeoutMs: 500 });
    await opened(audit);
    network.silence("request", "reply");
    await timed(audit.write("executions", envelope("e-1")));
    const startMs = performance.now();
    expect(await audit.close({ drainMs: 300 })).toEqual({ pending: 1 });
    expect(performance.now() - startMs).toBeLessThan(5_000);
    expect((await audit.write("executions", envelope("after"))).kind).toBe("queued");
  });
});
