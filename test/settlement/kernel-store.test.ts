/**
 * The client on a kernel store: deliver() makes the direct try, the ladder keeps what fails, a worker replays it. The same outcomes
 * as on the seeds' port, on the memory store with a clock that is moved and on PostgreSQL.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMakegood, topic } from "../../src/index.ts";
import { createSettlementClient } from "../../src/presets/settlement/client.ts";
import { billingOfCounts } from "../../src/presets/settlement/health.ts";
import type { SettlementOptions } from "../../src/presets/settlement/options.ts";
import { TOPIC } from "../../src/presets/settlement/topic.ts";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import { payloadOf } from "../../src/store/redis/dlq-port/entry.ts";
import type { Store } from "../../src/store/store.ts";
import { startTestServer, type TestServer } from "../server/support.ts";
import { dropSchema, openStore, withClient } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import { type Billing, type Reply, startBilling, testSigner } from "./billing.ts";
import { keptLog, movableClock, request, TEN_MINUTES } from "./scene.ts";

let billing: Billing;
const folders: string[] = [];
beforeAll(async () => {
  billing = await startBilling();
});
afterAll(async () => {
  await billing[Symbol.asyncDispose]();
  for (const folder of folders) await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
});

function onMemory(options: Partial<SettlementOptions> = {}) {
  const clock = movableClock();
  const kept = keptLog();
  const store = createMemoryStore({ clock });
  const logged: string[] = [];
  const makegood = { errorLog: (line: string) => void logged.push(line), ...options.makegood };
  const given = { billingUrl: billing.url, s2sSigner: testSigner(), dlqStore: store, clock, log: kept.log };
  const client = createSettlementClient({ ...given, ...options, makegood });
  return { client, clock, kept, store, logged, [Symbol.asyncDispose]: () => client.close() };
}

const in1s = (): Date => new Date(Date.now() + 1_000);
const messages = async (store: Store) => (await store.list({ topic: TOPIC, limit: 100 })).data;

describe("on the memory store", () => {
  const cases: [string, Reply, "finalized" | "idempotent" | "waits" | "dead"][] = [
    ["200", { status: 200 }, "finalized"],
    ["409 that agrees", { status: 409, body: { actualCostMicro: "1500000", state: "finalized" } }, "idempotent"],
    ["409 with another amount", { status: 409, body: { actualCostMicro: "1", state: "finalized" } }, "dead"],
    ["422", { status: 422 }, "dead"],
    ["404 of the reservation", { status: 404, body: { error: "reservation_not_found" } }, "dead"],
    ["404 of the address", { status: 404 }, "waits"],
    ["401", { status: 401 }, "waits"],
    ["503", { status: 503 }, "waits"],
    ["a reset", "reset", "waits"],
  ];
  it.each(cases)("%s", async (_name, reply, expected) => {
    billing.answer(reply);
    await using scene = onMemory();
    const given = request();
    const result = await scene.client.finalize(given);
    const [message] = await messages(scene.store);
    if (expected === "finalized" || expected === "idempotent") {
      expect(result).toEqual({ ok: true, status: expected });
      expect(message).toBeUndefined();
      return;
    }
    expect(result).toMatchObject({ ok: false, status: "dlq", id: given.reservation_id, stored: "primary" });
    const status = expected === "dead" ? "dead" : "pending";
    expect(message).toMatchObject({ status, key: given.reservation_id, tenantId: given.tenant_id });
    expect(await scene.client.getDLQSize()).toBe(expected === "dead" ? 0 : 1);
    billing.answer("honest");
    scene.clock.move(TEN_MINUTES);
    const counts = await scene.client.replayDeadLetters();
    expect(counts).toMatchObject({ replayed: expected === "dead" ? 0 : 1, succeeded: expected === "dead" ? 0 : 1 });
    expect(await scene.client.getDLQSize()).toBe(0);
  });

  it("INV-5, DF-15: five replays and then a dead letter, with its line", async () => {
    billing.answer({ status: 500 });
    await using scene = onMemory();
    const given = request();
    await scene.client.finalize(given);
    const terminal: number[] = [];
    for (let i = 0; i < 6; i++) {
      scene.clock.move(TEN_MINUTES);
      terminal.push((await scene.client.replayDeadLetters()).terminal);
    }
    expect(terminal).toEqual([0, 0, 0, 0, 1, 0]);
    expect(billing.callsOf(given.reservation_id)).toHaveLength(6);
    expect(scene.kept.of("terminal drop")).toMatchObject([{ reservation_id: given.reservation_id, attempts: 6 }]);
    expect(scene.kept.of("DLQ replay")).toHaveLength(5);
  });

  it("DF-16, DF-17: a repeat touches nothing, a contradiction is a dead letter of its own and an alarm", async () => {
    billing.answer({ status: 503 });
    await using scene = onMemory();
    const given = request();
    await scene.client.finalize(given);
    const [before] = await messages(scene.store);
    expect(await scene.client.finalize(given)).toMatchObject({ status: "dlq", stored: "primary" });
    expect(await scene.client.finalize({ ...given, trace_id: "another" })).toMatchObject({ status: "dlq", stored: "primary" });
    expect(await messages(scene.store)).toEqual([before]);
    expect(await scene.client.finalize({ ...given, actual_cost_micro: "2" })).toMatchObject({ status: "dlq" });
    const all = await messages(scene.store);
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set(["dead", "pending"]));
    expect(all).toHaveLength(2);
    expect(all.find(({ status }) => status === "dead")?.payload).toContain('"actual_cost_micro":"2"');
    expect(scene.kept.of("conflict")).toHaveLength(1);
  });

  it("DF-17: the same reservation of another tenant is a conflict to the client that kept the first, and to any other by what the receiver says", async () => {
    billing.answer({ status: 503 });
    await using scene = onMemory();
    await using other = onMemory({
      dlqStore: scene.store,
      clock: scene.clock,
      reservationPath: "/api/internal/reservations/{id}",
    });
    const [compared, bare] = [request(), request()];
    for (const one of [compared, bare]) {
      const second = { ...one, tenant_id: "tenant-2" };
      await scene.client.finalize(one);
      expect(await scene.client.finalize(second)).toMatchObject({ reason: expect.stringContaining("key_conflict") });
      expect(await other.client.finalize(second)).toMatchObject({ status: "dlq", stored: "primary" });
    }
    // One answers a repeat with the account it knows, the other with nothing, so that the reservation is read.
    billing.reservations(() => "honest");
    billing.answer(({ reservationId }, nth) =>
      nth <= 3 || reservationId === compared.reservation_id ? "honest" : { status: 409 },
    );
    scene.clock.move(TEN_MINUTES);
    await other.client.replayDeadLetters();
    const all = await messages(scene.store);
    for (const { reservation_id } of [compared, bare]) {
      expect(billing.effectsOf(reservation_id)).toBe(1);
      const ends = all.filter(({ key }) => key === reservation_id).map(({ status, lastCode }) => [status, lastCode]);
      expect(ends).toContainEqual(["dead", "settled_differently"]);
      expect(ends.filter(([status]) => status === "delivered")).toHaveLength(1);
    }
    expect(all.filter(({ lastCode }) => lastCode === "key_conflict")).toHaveLength(2);
  });

  it("DF-18, FIN-43: what is invalid is a dead letter under an id of its own, and nothing is sent", async () => {
    billing.answer("honest");
    await using scene = onMemory();
    const before = billing.calls.length;
    for (const bad of [request({ reservation_id: "" }), request({ actual_cost_micro: "1.5" }), null]) {
      expect(await scene.client.finalize(bad as never)).toMatchObject({
        status: "dlq",
        stored: "primary",
        id: expect.stringMatching(/^invalid-/),
      });
    }
    expect((await messages(scene.store)).map(({ status }) => status)).toEqual(["dead", "dead", "dead"]);
    expect(billing.calls.length).toBe(before);
  });

  it("EV-8: an open breaker sends nothing, and a probe finds out", async () => {
    billing.answer({ status: 503 });
    await using scene = onMemory();
    const before = billing.calls.length;
    for (let i = 0; i < 8; i++) await scene.client.finalize(request());
    expect(billing.calls.length - before).toBe(5);
    expect(await scene.client.getDLQSize()).toBe(8);
    billing.answer("honest");
    scene.clock.move(TEN_MINUTES);
    await scene.client.replayDeadLetters();
    expect(await scene.client.getDLQSize()).toBe(0);
  });

  it("health: memory survives nothing, and says so", async () => {
    await using scene = onMemory();
    await scene.client.ready();
    await until("a sample", async () => (await scene.client.health()).dlq_size === 0);
    expect(await scene.client.health()).toMatchObject({
      dlq_size: 0,
      dlq_store_type: "memory",
      dlq_durable: false,
      ready_for_billing: false,
    });
  });

  it("FIN-58, CON-5: GET /health of a server on the same store carries the billing block, and only then", async () => {
    const healthOf = async ({ api }: TestServer) => (await (await api("/health")).json()) as { billing?: object };
    await using without = await startTestServer();
    expect((await healthOf(without)).billing).toBeUndefined();
    billing.answer({ status: 503 });
    await using scene = onMemory();
    await scene.client.finalize(request());
    await using server = await startTestServer({}, { store: scene.store });
    expect((await healthOf(server)).billing).toMatchObject({
      dlq_size: 1,
      dlq_oldest_entry_age_ms: expect.any(Number),
      dlq_store_type: "memory",
      dlq_durable: false,
      dlq_aof_verified: false,
      dlq_persistence: "failed",
      ready_for_billing: false,
    });
  });

  it("DF-29: memory mode is refused while the journal knows of durable entries, and then keeps obligations all the same", async () => {
    const directory = await mkdtemp(join(tmpdir(), "makegood-settlement-"));
    folders.push(directory);
    const makegood = { journal: { directory } };
    billing.answer({ status: 503 });
    const schema = await (async () => {
      const store = await openStore();
      await using client = createSettlementClient({
        billingUrl: billing.url,
        s2sSigner: testSigner(),
        dlqStore: store,
        makegood,
        log: keptLog().log,
      });
      await client.finalize(request());
      await client.close();
      await store.close();
      return store.schema;
    })();
    await using scene = onMemory({ makegood });
    await expect(scene.client.ready()).rejects.toMatchObject({ code: "durable_entries_left" });
    expect(await scene.client.finalize(request())).toMatchObject({ status: "dlq", stored: "primary", survives: "nothing" });
    await using allowed = onMemory({ makegood: { ...makegood, allowMemory: "despite-durable-entries" } });
    await allowed.client.ready();
    await dropSchema(schema);
  });
});

describe("on PostgreSQL", () => {
  it("FIN-1, FIN-10: the same client on another engine: kept, replayed by the next instance, health durable", async () => {
    billing.answer({ status: 503 });
    const store = await openStore();
    const given = [request(), request()];
    const options = { billingUrl: billing.url, s2sSigner: testSigner(), dlqStore: store, log: keptLog().log };
    {
      await using client = createSettlementClient(options);
      await client.ready();
      for (const one of given) {
        expect(await client.finalize(one)).toMatchObject({ status: "dlq", stored: "primary", survives: "power-loss" });
      }
      // A busy machine may need more than health waits for its first sample.
      await until("a sample", async () => (await client.health()).dlq_size === 2);
      expect(await client.health()).toMatchObject({
        dlq_size: 2,
        dlq_store_type: "postgres",
        dlq_durable: true,
        ready_for_billing: true,
      });
      expect([client.isDurable(), client.isAofVerified()]).toEqual([true, false]);
      expect(billingOfCounts(await store.counts(), store.traits, true)).toMatchObject({ dlq_size: 2, dlq_durable: true });
    }
    // Ten minutes pass: rows of `ready` are never updated by anybody else, so the trigger that says so is put to sleep.
    await withClient(async (client) => {
      await client.query("set session_replication_role = replica");
      await client.query(`update "${store.schema}".ready set due = due - interval '10 minutes'`);
    });
    billing.answer("honest");
    await using second = createSettlementClient(options);
    expect(await second.replayDeadLetters()).toEqual({ replayed: 2, succeeded: 2, failed: 0, terminal: 0 });
    expect(await second.getDLQSize()).toBe(0);
    expect(given.map(({ reservation_id }) => billing.effectsOf(reservation_id))).toEqual([1, 1]);
    await second.close();
    await store.close();
    await dropSchema(store.schema);
  });

  it("what a killed process had claimed is taken back and replayed, also when nothing else is due", async () => {
    billing.answer({ status: 503 });
    const store = await openStore();
    const given = request();
    const log = keptLog().log;
    const options = { billingUrl: billing.url, s2sSigner: testSigner(), dlqStore: store, log, retryDelaysMs: [20] };
    await using client = createSettlementClient(options);
    expect(await client.finalize(given)).toMatchObject({ status: "dlq", stored: "primary" });
    const lanes = await store.lanes();
    const claimed = await store.claim({
      owner: "killed",
      leaseMs: 1_000,
      lanes: lanes.map(({ lane }) => ({ lane, limit: 10 })),
      now: in1s(),
    });
    expect(claimed).toHaveLength(1);
    billing.answer("honest");
    client.start({ everyMs: 100 });
    await until("it is settled", async () => (await client.getDLQSize()) === 0, 20_000);
    expect(billing.effectsOf(given.reservation_id)).toBe(1);
    await client.close();
    await store.close();
    await dropSchema(store.schema);
  });

  it("two instances replay the same 1,000 entries: each once", async () => {
    billing.answer("honest");
    const store = await openStore();
    const other = await openStore({ schema: store.schema });
    const given = Array.from({ length: 1_000 }, (_, i) => request({ tenant_id: `tenant-${i % 7}` }));
    // A hundred at once on a busy machine: none of them may be late, for a late one would be sent again.
    const options = { billingUrl: billing.url, s2sSigner: testSigner(), log: keptLog().log, timeoutMs: 20_000 };
    // Direct tries that were refused, due at once, as an outage leaves them.
    const mg = await createMakegood({ store, topics: [topic(TOPIC, {})], sharedStore: true });
    await mg.enqueueMany(
      TOPIC,
      given.map((one) => ({
        payload: payloadOf(one),
        key: one.reservation_id,
        tenantId: one.tenant_id,
      })),
    );
    await mg.close();
    const clients = [store, other].map((dlqStore) => createSettlementClient({ ...options, dlqStore }));
    const sums = await Promise.all(
      clients.map(async (client) => {
        let replayed = 0;
        while ((await client.getDLQSize()) > 0) replayed += (await client.replayDeadLetters()).replayed;
        return replayed;
      }),
    );
    for (const client of clients) await client.close();
    const calls = new Map<string, number>();
    for (const { reservationId } of billing.calls) calls.set(reservationId, (calls.get(reservationId) ?? 0) + 1);
    expect(given.filter(({ reservation_id }) => calls.get(reservation_id) !== 1)).toEqual([]);
    expect(sums.reduce((a, b) => a + b)).toBe(1_000);
    expect(Math.min(...sums)).toBeGreaterThan(0);
    expect(await store.counts()).toEqual([]);
    await other.close();
    await store.close();
    await dropSchema(store.schema);
  });

  it("a store that cannot be opened: finalize still settles, and what it cannot settle is in memory and in the log", async () => {
    const { createPostgresStore } = await import("../../src/store/postgres/index.ts");
    const store = createPostgresStore({ url: "postgres://nobody@127.0.0.1:1/none" });
    const kept = keptLog();
    await using client = createSettlementClient({
      billingUrl: billing.url,
      s2sSigner: testSigner(),
      dlqStore: store,
      log: kept.log,
    });
    billing.answer("honest");
    expect(await client.finalize(request())).toEqual({ ok: true, status: "finalized" });
    billing.answer({ status: 503 });
    expect(await client.finalize(request())).toMatchObject({ status: "dlq", stored: "memory", survives: "nothing" });
    expect(client.isDurable()).toBe(false);
    expect(await client.health()).toMatchObject({ dlq_size: null, dlq_durable: false });
    await expect(client.ready({ timeoutMs: 50 })).rejects.toThrow("not open within");
    await client.close();
    await store.close();
  });
});
