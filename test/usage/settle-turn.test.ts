/**
 * What a turn is charged: the outcome table, the bounded estimate, the cap, and whole numbers all the way.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { creditsOf, settleTurn, type TurnEnd, usageId, usageKey } from "../../src/presets/usage/settle-turn.ts";
import { reservationOf } from "../../src/presets/usage/snapshot.ts";
import type { Reservation } from "../../src/store/usage.ts";
import { uuid } from "./scene.ts";

function reservation(fields: Partial<Reservation> = {}): Reservation {
  const turn = reservationOf({
    tenantId: uuid(),
    turnId: uuid(),
    requestId: uuid(),
    chatId: uuid(),
    policyVersion: "1",
    model: "house-small",
    period: "2026-11",
    estimatedInputTokens: fields.estimatedInputTokens ?? 1_000,
    outputTokensMax: fields.outputTokensMax ?? 1_000,
    generationFloorTokens: fields.generationFloorTokens ?? 50,
    inputRate: fields.inputRate ?? 1_000n,
    outputRate: fields.outputRate ?? 2_000n,
    buckets: [{ name: "total" }],
  });
  return turn;
}

describe("EV-36: the outcome table", () => {
  const turn = reservation();
  const usage = { inputTokens: 900, outputTokens: 400 };
  const table: [TurnEnd, string, bigint][] = [
    [{ outcome: "completed", usage }, "actual", 1_700n],
    [{ outcome: "completed" }, "estimated", 1_100n],
    [{ outcome: "failed", usage }, "actual", 1_700n],
    [{ outcome: "failed" }, "estimated", 1_100n],
    [{ outcome: "failed", requestSent: true }, "estimated", 1_100n],
    [{ outcome: "failed", requestSent: false }, "released", 0n],
    [{ outcome: "failed", requestSent: false, usage }, "actual", 1_700n],
    [{ outcome: "aborted", usage }, "actual", 1_700n],
    [{ outcome: "aborted" }, "estimated", 1_100n],
    [{ outcome: "aborted", requestSent: false }, "estimated", 1_100n],
    [{ outcome: "completed", usage: { inputTokens: 0, outputTokens: 0 } }, "estimated", 1_100n],
    [{ outcome: "completed", usage: { inputTokens: -1, outputTokens: 4 } }, "estimated", 1_100n],
    [{ outcome: "aborted", usage: { inputTokens: 1.5, outputTokens: 4 } }, "estimated", 1_100n],
    [{ outcome: "aborted", usage: { inputTokens: Number.NaN, outputTokens: 4 } }, "estimated", 1_100n],
  ];
  for (const [end, method, credits] of table) {
    it(`${JSON.stringify(end)} → ${method}, ${credits}`, () => {
      expect(settleTurn(turn, end)).toMatchObject({ outcome: end.outcome, method, credits, capped: false });
    });
  }
});

describe("EV-37: estimate and cap", () => {
  it("a generation floor above the reserved output is cut to it", () => {
    const settled = settleTurn(reservation({ outputTokensMax: 10, generationFloorTokens: 500 }), { outcome: "aborted" });
    expect(settled).toMatchObject({ inputTokens: 1_000, outputTokens: 10, credits: 1_020n });
  });

  it("up to a tenth over the reserve is charged as it is, more is capped and flagged", () => {
    const turn = reservation({ inputRate: 0n, outputRate: 1_000n });
    const charged = (outputTokens: number) => settleTurn(turn, { outcome: "completed", usage: { inputTokens: 1, outputTokens } });
    expect(charged(1_100)).toMatchObject({ credits: 1_100n, capped: false });
    expect(charged(1_101)).toMatchObject({ credits: 1_100n, capped: true, outputTokens: 1_101 });
  });

  it("each component is rounded up by itself, in whole numbers", () => {
    expect(creditsOf({ inputRate: 1n, outputRate: 1n }, 1, 1)).toBe(2n);
    expect(creditsOf({ inputRate: 3n, outputRate: 0n }, 333_333_333, 0)).toBe(1_000_000n);
    expect(creditsOf({ inputRate: 1_000_000_000n, outputRate: 1_000_000_000n }, 1e9, 1e9)).toBe(2_000_000_000_000_000n);
    expect(() => creditsOf({ inputRate: 1_000_000_001n, outputRate: 0n }, 1, 0)).toThrow(/out of range/);
  });

  it("whatever happens: never below zero, never past the tolerance, estimates never past the reserve", () => {
    const count = fc.integer({ min: 0, max: 1_000_000_000 });
    const rate = fc.bigInt({ min: 0n, max: 1_000_000_000n });
    const outcome = fc.constantFrom("completed", "failed", "aborted") as fc.Arbitrary<TurnEnd["outcome"]>;
    const usage = fc.option(fc.record({ inputTokens: count, outputTokens: count }), { nil: undefined });
    fc.assert(
      fc.property(
        count,
        count,
        count,
        rate,
        rate,
        outcome,
        usage,
        fc.boolean(),
        (input, output, floor, inRate, outRate, how, used, sent) => {
          const turn = reservation({
            estimatedInputTokens: input,
            outputTokensMax: output,
            generationFloorTokens: floor,
            inputRate: inRate,
            outputRate: outRate,
          });
          const settled = settleTurn(turn, { outcome: how, usage: used, requestSent: sent });
          expect(settled.credits).toBeGreaterThanOrEqual(0n);
          expect(settled.credits * 100n).toBeLessThanOrEqual(turn.reservedCredits * 110n);
          if (settled.method !== "actual") expect(settled.credits).toBeLessThanOrEqual(turn.reservedCredits);
          if (settled.method === "released") expect([how, sent, settled.credits]).toEqual(["failed", false, 0n]);
        },
      ),
      { numRuns: 300 },
    );
  });

  it("only named counters pass, and a reason that is no code does not", () => {
    const given = { inputTokens: 1, outputTokens: 1, counters: { searches: 3, response_id: 7, images: -1 } };
    const settled = settleTurn(reservation(), { outcome: "completed", usage: given, reason: "resp_68a1… failed" }, [
      "searches",
      "images",
    ]);
    expect(settled.counters).toEqual({ searches: 3 });
    expect(settled.reason).toBe("unspecified");
  });
});

describe("DO-15: ids and keys have one spelling", () => {
  it("DO-15: every spelling of a UUID becomes the same 32 lower-case hex digits", () => {
    const hex = "0198a2f4c3d47e5fa6b7c8d9e0f1a2b3";
    const dashed = "0198a2f4-c3d4-7e5f-a6b7-c8d9e0f1a2b3";
    for (const one of [hex, dashed, dashed.toUpperCase()]) expect(usageId("turnId", one)).toBe(hex);
    expect(usageKey({ tenantId: hex, turnId: hex, requestId: hex })).toMatch(/^[0-9a-f]{32}\/[0-9a-f]{32}\/[0-9a-f]{32}$/);
  });

  it("DO-15: anything else is refused, null and the nil UUID included", () => {
    const wrong = [
      null,
      undefined,
      "",
      "a/b",
      "0198a2f4-c3d47e5fa6b7c8d9e0f1a2b3",
      `${"0".repeat(32)}`,
      " 0198a2f4c3d47e5fa6b7c8d9e0f1a2b3",
      7,
    ];
    for (const one of wrong) expect(() => usageId("turnId", one)).toThrow(/turnId must be a UUID/);
  });

  it("every mistake of a reservation is reported at once", () => {
    const input = {
      tenantId: "x",
      turnId: uuid(),
      requestId: uuid(),
      chatId: uuid(),
      policyVersion: "",
      model: "resp_abc",
      period: "??",
    };
    const rest = {
      estimatedInputTokens: -1,
      outputTokensMax: 1,
      generationFloorTokens: 1,
      inputRate: 1.5,
      outputRate: 1,
      buckets: [],
    };
    expect(() => reservationOf({ ...input, ...rest })).toThrow(
      /estimatedInputTokens.*policyVersion.*model.*period.*tenantId.*inputRate.*buckets/,
    );
  });
});
