/**
 * The five invariants of settlement as properties: random requests, random answers, 100 runs each (FIN-3, FIN-51…57, FIN-71, CON-11).
 */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  assertBoundedRetry,
  assertCompleteness,
  assertCostUnchanged,
  assertDegraded,
  assertIdempotent,
  assertPersisted,
  BILLING_INVARIANTS,
} from "../../src/presets/settlement/invariants.ts";
import type { FinalizeRequest, FinalizeResult } from "../../src/presets/settlement/request.ts";
import { type Billing, type Reply, startBilling } from "./billing.ts";
import { request, sceneOf, TEN_MINUTES } from "./scene.ts";

const RUNS = { numRuns: 100 };
let billing: Billing;
beforeAll(async () => {
  billing = await startBilling();
});
afterAll(() => billing[Symbol.asyncDispose]());

const cost = fc.bigInt({ min: 0n, max: 10n ** 30n - 1n }).map(String);
const reply: fc.Arbitrary<Reply> = fc.oneof(
  fc.constant<Reply>("honest"),
  fc.constant<Reply>("act-and-reset"),
  fc.constant<Reply>("reset"),
  fc.record({ status: fc.constantFrom(200, 202, 400, 401, 404, 409, 410, 422, 429, 500, 503), body: fc.jsonValue() }),
);
const anything = fc.oneof(
  fc.anything(),
  fc.record({
    reservation_id: fc.oneof(fc.string(), fc.string({ unit: "binary" }), fc.anything()),
    tenant_id: fc.oneof(fc.string(), fc.anything()),
    actual_cost_micro: fc.oneof(cost, fc.string(), fc.double(), fc.bigInt(), fc.anything()),
    trace_id: fc.anything(),
  }),
);

describe("invariants", () => {
  it("INV-1: random requests and random answers end in exactly one of three outcomes", async () => {
    await fc.assert(
      fc.asyncProperty(cost, reply, async (actual_cost_micro, answer) => {
        billing.answer(answer);
        await using scene = sceneOf(billing);
        assertCompleteness(await scene.client.finalize(request({ actual_cost_micro })));
        const { finalized, idempotent, dlq } = scene.client.counts();
        expect(finalized + idempotent + dlq).toBe(1);
      }),
      RUNS,
    );
  });

  it("INV-1, FIN-43: whatever comes in, finalize never throws, and what cannot be settled ends as dlq", async () => {
    billing.answer("honest");
    await using scene = sceneOf(billing);
    let invalid = 0;
    await fc.assert(
      fc.asyncProperty(anything, async (input) => {
        const result = await scene.client.finalize(input as FinalizeRequest);
        assertCompleteness(result);
        if (result.ok || !result.id.startsWith("invalid-")) return;
        invalid++;
        expect(await scene.store.getTerminal(result.id)).not.toBeNull();
      }),
      { numRuns: 300 },
    );
    // Most of what can come in is no request: a property that never met one has shown nothing.
    expect(invalid).toBeGreaterThan(30);
  });

  it("INV-2: what ended as dlq can be read back by its id, with its cost", async () => {
    await fc.assert(
      fc.asyncProperty(cost, async (actual_cost_micro) => {
        billing.answer({ status: 500 });
        await using scene = sceneOf(billing);
        const result = await scene.client.finalize(request({ actual_cost_micro }));
        const entry = result.ok ? null : await scene.store.get(result.id);
        assertPersisted(result, entry);
        assertCostUnchanged(actual_cost_micro, [entry?.actual_cost_micro ?? ""]);
      }),
      RUNS,
    );
  });

  it("INV-2d: in memory the whole entry is in the log at ERROR and nobody says durable", async () => {
    await fc.assert(
      fc.asyncProperty(cost, async (actual_cost_micro) => {
        billing.answer({ status: 503 });
        await using scene = sceneOf(billing, { dlqStore: undefined });
        const given = request({ actual_cost_micro });
        const result = await scene.client.finalize(given);
        const errors = scene.kept.lines.filter(({ level }) => level === "error");
        assertDegraded(
          result,
          errors.map((line) => JSON.stringify(line)),
          scene.client.isDurable(),
        );
        expect(errors.find(({ entry }) => entry !== undefined)?.entry).toMatchObject({ ...given });
        expect((await scene.client.health()).dlq_durable).toBe(false);
      }),
      RUNS,
    );
  });

  it("INV-3: a second finalize is idempotent, and the receiver had one effect", async () => {
    await fc.assert(
      fc.asyncProperty(cost, fc.integer({ min: 2, max: 5 }), async (actual_cost_micro, times) => {
        billing.answer("honest");
        await using scene = sceneOf(billing);
        const given = request({ actual_cost_micro });
        expect(await scene.client.finalize(given)).toEqual({ ok: true, status: "finalized" });
        for (let i = 1; i < times; i++) {
          const again = await scene.client.finalize(given);
          expect(again).toEqual({ ok: true, status: "idempotent" });
          assertIdempotent(again, billing.effectsOf(given.reservation_id));
        }
        expect(billing.effectsOf(given.reservation_id)).toBe(1);
        expect(new Set(billing.callsOf(given.reservation_id).map(({ key }) => key))).toEqual(new Set([given.reservation_id]));
      }),
      RUNS,
    );
  });

  it("INV-4: the cost is the same text on the wire, in the store and in every replay", async () => {
    await fc.assert(
      fc.asyncProperty(cost, fc.integer({ min: 1, max: 4 }), async (actual_cost_micro, failures) => {
        billing.answer((_call, nth) => (nth <= failures ? { status: 503 } : "honest"));
        await using scene = sceneOf(billing);
        const given = request({ actual_cost_micro });
        await scene.client.finalize(given);
        const stored: string[] = [];
        for (let i = 0; i < failures; i++) {
          stored.push((await scene.store.get(given.reservation_id))?.actual_cost_micro ?? "");
          scene.clock.move(TEN_MINUTES);
          await scene.client.replayDeadLetters();
        }
        const calls = billing.callsOf(given.reservation_id);
        assertCostUnchanged(actual_cost_micro, [...stored, ...calls.map((call) => call.actualCostMicro)]);
        expect(calls.every(({ body }) => body.includes(`"actualCostMicro":"${actual_cost_micro}"`))).toBe(true);
        expect(billing.ledger.get(given.reservation_id)?.amount).toBe(actual_cost_micro);
      }),
      RUNS,
    );
  });

  it("INV-5: replays end after maxRetries, and the end is a dead letter", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 8 }), fc.constantFrom(401, 429, 500, 503), async (maxRetries, status) => {
        billing.answer({ status });
        await using scene = sceneOf(billing, { maxRetries });
        const given = request();
        await scene.client.finalize(given);
        const sum = { replayed: 0, terminal: 0 };
        for (let i = 0; i < maxRetries + 3; i++) {
          scene.clock.move(TEN_MINUTES);
          const counts = await scene.client.replayDeadLetters();
          sum.replayed += counts.replayed;
          sum.terminal += counts.terminal;
        }
        assertBoundedRetry(billing.callsOf(given.reservation_id).length, maxRetries);
        expect(sum).toEqual({ replayed: maxRetries, terminal: 1 });
        expect(await scene.store.getTerminal(given.reservation_id)).toMatchObject({ resolution: "open" });
        expect(await scene.client.getDLQSize()).toBe(0);
      }),
      RUNS,
    );
  });

  it("each assertion can fail, and says which invariant it was", () => {
    const kept: FinalizeResult = { ok: false, status: "dlq", reason: "x", id: "r", stored: "memory", survives: "nothing" };
    const failures: [keyof typeof BILLING_INVARIANTS, () => void][] = [
      ["INV_1_COMPLETENESS", () => assertCompleteness({ ok: true, status: "dlq" } as unknown as FinalizeResult)],
      ["INV_2_PERSISTENCE_DURABLE", () => assertPersisted(kept, null)],
      ["INV_2D_PERSISTENCE_DEGRADED", () => assertDegraded(kept, [], false)],
      ["INV_2D_PERSISTENCE_DEGRADED", () => assertDegraded(kept, ["r"], true)],
      ["INV_3_IDEMPOTENCY", () => assertIdempotent({ ok: true, status: "finalized" }, 1)],
      ["INV_3_IDEMPOTENCY", () => assertIdempotent({ ok: true, status: "idempotent" }, 2)],
      ["INV_4_COST_IMMUTABILITY", () => assertCostUnchanged("1", ["1", "1.0"])],
      ["INV_4_COST_IMMUTABILITY", () => assertCostUnchanged("01", ["01"])],
      ["INV_5_BOUNDED_RETRY", () => assertBoundedRetry(7, 5)],
    ];
    for (const [name, check] of failures) expect(check).toThrowError(new RegExp(`^${name}: `));
    expect(Object.keys(BILLING_INVARIANTS)).toHaveLength(6);
  });
});
