/**
 * The `billing` block of health (CON-5, FIN-58, FIN-59, EV-12) and the log lines (FIN-64, CON-10): what they carry, and that
 * neither waits for a store that hangs.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSettlementClient } from "../../src/presets/settlement/client.ts";
import type { DLQPort } from "../../src/store/redis/dlq-port/dlq-store.ts";
import { createMemoryDLQStore } from "../../src/store/redis/dlq-port/port.ts";
import { type Billing, startBilling, testSigner } from "./billing.ts";
import { request, sceneOf, TEN_MINUTES } from "./scene.ts";

let billing: Billing;
beforeAll(async () => {
  billing = await startBilling();
});
afterAll(() => billing[Symbol.asyncDispose]());

const HANGS = new Promise<never>(() => undefined);

describe("the billing block", () => {
  it("FIN-58: size, age, type, durability", async () => {
    billing.answer({ status: 503 });
    await using scene = sceneOf(billing);
    expect(await scene.client.health()).toMatchObject({ dlq_size: 0, dlq_oldest_entry_age_ms: null, dlq_store_type: "memory" });
    await scene.client.finalize(request());
    scene.clock.move(5_000);
    await scene.client.finalize(request());
    const health = await scene.client.health();
    expect(health).toMatchObject({
      dlq_size: 2,
      dlq_store_type: "memory",
      dlq_durable: false,
      dlq_aof_verified: false,
      dlq_persistence: "failed",
      ready_for_billing: false,
    });
    expect(health.dlq_oldest_entry_age_ms).toBeGreaterThanOrEqual(5_000);
    expect(await scene.client.getDLQOldestAgeMs()).toBeGreaterThanOrEqual(5_000);
    expect([scene.client.isDurable(), scene.client.isAofVerified()]).toEqual([false, false]);
  });

  it("DF-27: a store that never answers: nothing known at first, the last sample later, never an exception", async () => {
    const memory = createMemoryDLQStore();
    let hangs: boolean = true;
    let asked = 0;
    const counts = () => {
      asked++;
      return hangs ? HANGS : memory.store.counts();
    };
    const store: DLQPort = { ...memory, store: { ...memory.store, counts } };
    await using scene = sceneOf(billing, { dlqStore: store });
    expect(await scene.client.health()).toEqual({
      dlq_size: null,
      dlq_oldest_entry_age_ms: null,
      dlq_store_type: "unknown",
      dlq_durable: false,
      dlq_aof_verified: false,
      dlq_persistence: "unknown",
      dlq_attested: null,
      dlq_unreadable: 0,
      ready_for_billing: false,
      sampled_ms_ago: null,
    });
    await Promise.all(Array.from({ length: 10 }, () => scene.client.health()));
    expect(asked).toBe(1);
    hangs = false;
    // The question that hangs is given up; then the next one is answered.
    while ((await scene.client.health()).dlq_size === null) await new Promise((resolve) => setTimeout(resolve, 50));
    hangs = true;
    const old = await scene.client.health();
    expect(old).toMatchObject({ dlq_size: 0, dlq_durable: false, ready_for_billing: false });
    expect(old.sampled_ms_ago).toBeGreaterThan(0);
  });

  it("FIN-59: a store that throws makes health say unknown, not throw", async () => {
    const broken = new Error("no");
    const memory = createMemoryDLQStore();
    const store: DLQPort = { ...memory, store: { ...memory.store, counts: () => Promise.reject(broken) } };
    await using scene = sceneOf(billing, { dlqStore: store });
    expect(await scene.client.health()).toMatchObject({ dlq_size: null, dlq_store_type: "unknown", dlq_durable: false });
  });
});

describe("log lines", () => {
  it("FIN-64: each has the prefix and the union of the fields", async () => {
    billing.answer({ status: 503 });
    await using scene = sceneOf(billing, { maxRetries: 1 });
    const [first, second] = [request(), request()];
    await scene.client.finalize(first);
    await scene.client.finalize(second);
    billing.answer(({ reservationId }) => (reservationId === first.reservation_id ? { status: 500 } : "honest"));
    scene.clock.move(TEN_MINUTES);
    await scene.client.replayDeadLetters();
    expect(scene.kept.lines.every(({ message }) => message.startsWith("[billing-finalize] "))).toBe(true);
    const reason = expect.stringContaining("http_503");
    expect(scene.kept.of("DLQ: entry")[0]).toMatchObject({
      reservation_id: first.reservation_id,
      reason,
      attempt: 1,
      store: "memory",
    });
    expect(scene.kept.of("DLQ replay")).toMatchObject([{ replayed: 2, succeeded: 1, failed: 0, terminal: 1, remaining: 0 }]);
    expect(scene.kept.of("terminal drop")).toMatchObject([
      {
        level: "error",
        reservation_id: first.reservation_id,
        tenant_id: "tenant-1",
        actual_cost_micro: "1500000",
        attempts: 2,
        created_at: expect.any(String),
      },
    ]);
    expect(scene.kept.of("not ready for billing")).toMatchObject([{ level: "warn", store: "memory" }]);
  });
});

describe("configuration", () => {
  it.each([
    ["a url that is none", { billingUrl: "billing" }],
    ["a scheme that is not HTTP", { billingUrl: "file:///etc/passwd" }],
    ["a metadata address", { billingUrl: "http://169.254.169.254/" }],
    ["a password in the url", { billingUrl: "http://a:b@127.0.0.1/" }],
    ["no signer", { s2sSigner: undefined as never }],
    ["a timeout of nothing", { timeoutMs: 0 }],
    ["no retries at all", { maxRetries: 0 }],
    ["another subject", { s2sSubjectMode: "root" as never }],
  ])("%s is refused at start", (_name, over) => {
    const good = { billingUrl: "http://127.0.0.1:9/", s2sSigner: testSigner() };
    expect(() => createSettlementClient({ ...good, ...over })).toThrow(expect.objectContaining({ code: "invalid_config" }));
  });

  it("calls the path below where the service lives", async () => {
    billing.answer("honest");
    await using scene = sceneOf({ url: `${billing.url}/` });
    expect(await scene.client.finalize(request())).toMatchObject({ ok: true });
    await using below = sceneOf({ url: `${billing.url}/v2/` });
    // The service of the tests knows no such path.
    expect(await below.client.finalize(request())).toMatchObject({ reason: expect.stringContaining("http_404") });
  });
});
