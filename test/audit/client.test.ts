/**
 * The audit client over one Makegood: its ladder is the only fallback (N3), stores that are the caller's stay open (N7), and the seed's own
 * shape is a record like any other (N13).
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { type AuditClient, type AuditClientOptions, createAuditClient } from "../../src/presets/audit/client.ts";
import { readLine } from "../../src/store/ladder/format/error-line.ts";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { startReceiver } from "../support/receiver.ts";
import { startProxy, targetOf } from "../support/tcp-proxy.ts";
import { envelope } from "./records.ts";
import { QUICK, startAuditServer } from "./support.ts";

vi.setConfig({ testTimeout: 60_000 });

/** Nobody listens there. */
const NOWHERE = "http://127.0.0.1:47";

function client(url: string, options: Partial<AuditClientOptions> = {}): AuditClient & { readonly lines: string[] } {
  const lines: string[] = [];
  const errorLog = (line: string): void => void lines.push(line);
  const made = createAuditClient({ url, timeoutMs: 1_000, retry: QUICK, pollMs: 50, actor: "test", errorLog, ...options });
  return Object.assign(made, { lines });
}

/** The records that the ERROR log would give back to `makegood journal import`. */
const importable = (lines: readonly string[]): string[] =>
  lines.flatMap((line) => {
    const read = readLine(line, null);
    return read?.ok ? [read.entry.message.payload] : [];
  });

describe("N8", () => {
  it.each([
    ["throw", (): never => fail()],
    ["reject", async (): Promise<void> => fail()],
  ])("hooks that %s change no result: write() never throws, whatever comes in", async (_, hook) => {
    const audit = client(NOWHERE, { errorLog: hook, onEvent: hook });
    expect(await audit.execution(envelope("e-1") as never)).toMatchObject({ kind: "queued" });
    expect(await audit.write("executions", unreadable() as never)).toMatchObject({ kind: "logged", code: "write_failed" });
    await audit.close();
  });

  it("what cannot even be read is shown in the ERROR log, as its result says", async () => {
    const audit = client(NOWHERE);
    expect(await audit.write("executions", unreadable() as never)).toMatchObject({ kind: "logged" });
    expect(audit.lines).toEqual([expect.stringContaining("restart-pod")]);
    await audit.close();
  });

  it("members that are undefined are absent, in the seed's own shape too", async () => {
    await using receiver = await startReceiver({ status: 201 });
    const audit = client(receiver.url);
    const seed = { id: "s-1", fingerprint: "f-1", confidence: 0.87 };
    for (const more of [{ event_id: undefined }, { data: undefined }])
      expect(await audit.write("ai-decisions", { ...seed, ...more } as never)).toMatchObject({ kind: "stored" });
    await audit.close();
  });
});

const fail = (): never => {
  throw new Error("no log");
};
const unreadable = () => ({
  workflow: "restart-pod",
  get event_id() {
    return fail();
  },
});

describe("N3: a store that is not open yet", () => {
  it("holds nobody up; one key conflict does not stop the others, and all is in the ERROR log until it moved", async () => {
    const schema = freshSchema();
    await using network = await startProxy(targetOf(databaseUrl()));
    network.refuse();
    const store = createPostgresStore({ url: network.via(databaseUrl()), schema, connectTimeoutMs: 500 });
    // Another producer's record has the event id of the fourth one.
    const before = client(NOWHERE, { store: createPostgresStore({ url: databaseUrl(), schema }), work: false });
    await vi.waitFor(async () => expect((await before.makegood()) === null).toBe(false), 20_000);
    expect((await before.execution(envelope("e-4", "executions", { outcome: "failure" }) as never)).kind).toBe("queued");
    await before.close();

    const audit = client(NOWHERE, { store, work: false });
    const ids = Array.from({ length: 7 }, (_, i) => `e-${i + 1}`);
    for (const id of ids) {
      expect(await audit.execution(envelope(id) as never)).toMatchObject({ kind: "queued", survives: "nothing", eventId: id });
    }
    expect(importable(audit.lines)).toEqual(ids.map((id) => JSON.stringify(envelope(id))));
    expect(await audit.pending()).toBe(7);
    network.heal();
    await vi.waitFor(async () => expect(await audit.pending()).toBe(7), { timeout: 20_000, interval: 100 });
    const held = async () => new Set((await store.list({ limit: 20 })).data.map(({ key }) => key));
    await vi.waitFor(async () => expect(await held()).toEqual(new Set(ids)), { timeout: 20_000, interval: 100 });
    // From now on it is the first that is asked.
    expect(await audit.execution(envelope("later") as never)).toMatchObject({ kind: "queued", survives: "power-loss" });
    expect(await audit.close({ drainMs: 100 })).toEqual({ pending: 8 });
    await store.check();
    await store.close();
    await dropSchema(schema);
  });

  it("beyond memory's bounds a record is logged: whole, and importable", async () => {
    const never = { ...createMemoryStore(), open: () => new Promise<void>(() => {}) };
    const audit = client(NOWHERE, { store: never, work: false });
    const large = (id: string) => envelope(id, "executions", { large: "x".repeat(1_000_000) });
    const kinds: string[] = [];
    for (let i = 0; i < 36; i++) kinds.push((await audit.execution(large(`e-${i}`) as never)).kind);
    expect([kinds[0], kinds.at(-1)]).toEqual(["queued", "logged"]);
    expect(importable(audit.lines)).toHaveLength(36);
    expect(JSON.parse(importable(audit.lines).at(-1) ?? "")).toEqual(large("e-35"));
    await audit.close({ drainMs: 0 });
  });
});

describe("N3: without a store", () => {
  it("every record that waits is in the ERROR log whole, once; what is delivered or known already is not", async () => {
    await using receiver = await startReceiver(() => ({ status: receiver.arrivals.length > 1 ? 503 : 201 }));
    const audit = client(receiver.url, { work: false });
    expect((await audit.execution(envelope("stored") as never)).kind).toBe("stored");
    expect(audit.lines).toEqual([]);
    for (const id of ["a", "b", "b"])
      expect(await audit.execution(envelope(id) as never)).toMatchObject({ kind: "queued", survives: "nothing" });
    expect((await audit.write("executions", { event_id: "bad", data: {} } as never)).kind).toBe("quarantined");
    const [a, b, bad, ...more] = importable(audit.lines);
    expect([a, b, more]).toEqual([JSON.stringify(envelope("a")), JSON.stringify(envelope("b")), []]);
    expect(JSON.parse(bad ?? "")).toMatchObject({ audit_type: "executions" });
    expect(await audit.close({ drainMs: 0 })).toEqual({ pending: 2 });
    // Nobody is left to send it: it says so, and the log has it.
    expect(await audit.execution(envelope("after") as never)).toMatchObject({ survives: "nothing", code: "closed" });
    expect(importable(audit.lines).at(-1)).toBe(JSON.stringify(envelope("after")));
  });

  it("a journal alone keeps records through a restart, and sends them from there", async () => {
    const directory = await mkdtemp(join(tmpdir(), "makegood-audit-"));
    const first = client(NOWHERE, { journal: { directory } });
    for (const id of ["a", "b"])
      expect(await first.execution(envelope(id) as never)).toMatchObject({ kind: "queued", survives: "power-loss" });
    expect([await first.close({ drainMs: 0 }), first.lines]).toEqual([{ pending: 2 }, []]);
    await using receiver = await startReceiver(() => ({ status: 201 }));
    await using second = client(receiver.url, { journal: { directory } });
    await vi.waitFor(async () => expect(await second.pending()).toBe(0), { timeout: 20_000, interval: 100 });
    expect(new Set(receiver.arrivals.map(({ body }) => JSON.parse(body).event_id))).toEqual(new Set(["a", "b"]));
    await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  });

  it("a journal that cannot be opened keeps no record from being sent", async () => {
    await using receiver = await startReceiver(() => ({ status: 201 }));
    await using audit = client(receiver.url, { journal: { directory: "/dev/null/nowhere" } });
    expect((await audit.execution(envelope("a") as never)).kind).toBe("stored");
  });
});

describe("N13: the seed's own shape", () => {
  it("is wrapped, stored once for each id and text, and kept twice where it has no id", async () => {
    await using server = await startAuditServer();
    await using audit = client(server.url, { timeoutMs: 10_000 });
    const analysis = { id: "an-1", fingerprint: "f", confidence: 0.87, extra: [1] };
    const first = await audit.aiDecision(analysis);
    expect(first).toMatchObject({ kind: "stored" });
    expect(await audit.aiDecision(analysis)).toMatchObject({ kind: "duplicate", eventId: first.eventId });
    expect((await audit.aiDecision({ ...analysis, confidence: 0.9 })).kind).toBe("stored");
    for (let i = 0; i < 2; i++) expect((await audit.signalProcessing({ fingerprint: "f" })).kind).toBe("stored");
    const texts = [...(await server.stored()).values()];
    expect(texts).toHaveLength(4);
    expect(JSON.parse(texts[0] ?? "")).toMatchObject({
      event_id: first.eventId,
      correlation_id: "an-1",
      actor: "test",
      resource: "ai-decisions",
      outcome: "unknown",
      data: analysis,
    });
    // What is wrong with it is what its data lacks, not its shape.
    const bad = await audit.aiDecision({ id: "an-2", confidence: 2 } as never);
    expect(bad).toMatchObject({ kind: "quarantined", error: expect.stringMatching(/^data\.fingerprint .*data\.confidence/) });
    await server.stop();
    // Waiting twice is waiting once.
    for (let i = 0; i < 2; i++)
      expect((await audit.execution({ id: "w-1", workflow: "w" } as never)).kind, `write ${i}`).toBe("queued");
    expect(await audit.pending()).toBe(1);
  });
});

describe("N15: a service that is not at its address", () => {
  it.each([301, 404])("%i is an outage of the service, for a person to mend, and never a record's end", async (status) => {
    await using receiver = await startReceiver(() => ({ status }));
    await using audit = client(receiver.url, { retry: { ...QUICK, tableMs: [50, 50] } });
    expect(await audit.execution(envelope("e-1") as never)).toMatchObject({ kind: "queued", code: `http_${status}` });
    await vi.waitFor(() => expect(receiver.arrivals.length).toBeGreaterThan(4), 20_000);
    expect([await audit.pending(), await audit.deadLetters()]).toEqual([1, 0]);
  });
});
