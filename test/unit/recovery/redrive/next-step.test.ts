/**
 * The step function of redrives by property: whatever the plan, the receivers and the pace of the runner, the rate is never passed,
 * the canary goes first, the bound stops it, and it always ends.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { planOf, planText, stateOf, stateText } from "../../../../src/recovery/redrive/kept-text.ts";
import { firstState, nextStep, restarted, type StepState, UNKNOWN_MS_MAX } from "../../../../src/recovery/redrive/next-step.ts";
import type { RedriveCounts } from "../../../../src/recovery/redrive/redrive.ts";
import { REDRIVE_DEFAULTS, type RedrivePlan } from "../../../../src/recovery/redrive/request.ts";

const START_MS = 1_700_000_000_000;

const plans = fc.record<RedrivePlan>({
  canary: fc.integer({ min: 0, max: 20 }),
  ratePerSecond: fc.oneof(fc.integer({ min: 1, max: 2_000 }), fc.double({ min: 0.5, max: 3, noNaN: true })),
  rampFrom: fc.integer({ min: 1, max: 500 }),
  failureShareMax: fc.double({ min: 0, max: 1, noNaN: true }),
  failureMin: fc.integer({ min: 1, max: 50 }),
  delayMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 90_000 })),
});

/** A list of messages, each with its ending and how long that takes; null: never known. */
const worlds = fc.record({
  endings: fc.array(
    fc.record({
      fails: fc.boolean(),
      skipped: fc.boolean(),
      tookMs: fc.oneof(
        { weight: 20, arbitrary: fc.integer({ min: 0, max: 4_000 }) },
        { weight: 1, arbitrary: fc.constant(null) },
      ),
    }),
    { minLength: 1, maxLength: 120 },
  ),
  /** How much later than asked the runner comes back. */
  lateMs: fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 300 }), fc.constant(8_000)), {
    minLength: 1,
    maxLength: 30,
  }),
});

type World = typeof worlds extends fc.Arbitrary<infer W> ? W : never;

interface Run {
  readonly sends: { readonly ms: number; readonly n: number; readonly before: RedriveCounts; readonly state: StepState }[];
  readonly end: { readonly kind: string; readonly reason: string | null };
  readonly counts: RedriveCounts;
  readonly steps: number;
}

/** Plays a redrive through, as the runner would. */
function play(plan: RedrivePlan, { endings, lateMs }: World): Run {
  const sends: Run["sends"] = [];
  let nowMs = START_MS;
  let state = firstState(nowMs, nowMs + plan.delayMs);
  let position = 0;
  const counts = { selected: endings.length, waiting: endings.length, sent: 0, healed: 0, failed: 0, skipped: 0 };
  const open: { knownMs: number; fails: boolean }[] = [];
  for (let steps = 1; steps <= 100_000; steps++) {
    for (const one of open.filter(({ knownMs }) => knownMs <= nowMs)) {
      open.splice(open.indexOf(one), 1);
      counts.sent--;
      counts[one.fails ? "failed" : "healed"]++;
    }
    const next = nextStep(plan, counts, state, nowMs);
    state = next.state;
    const { step } = next;
    if (step.kind === "stop" || step.kind === "done") return { sends, end: step, counts, steps };
    if (step.kind === "wait") {
      assert.ok(step.ms > 0);
      nowMs += step.ms + (lateMs[steps % lateMs.length] as number);
      continue;
    }
    assert.ok(Number.isInteger(step.n) && step.n > 0 && step.n <= counts.waiting);
    let sent = 0;
    const before = { ...counts };
    for (const { fails, skipped, tookMs } of endings.slice(position, position + step.n)) {
      counts.waiting--;
      if (skipped) counts.skipped++;
      else {
        counts.sent++;
        sent++;
        open.push({ knownMs: tookMs === null ? Number.POSITIVE_INFINITY : nowMs + tookMs, fails });
      }
    }
    position += step.n;
    if (sent > 0) sends.push({ ms: nowMs, n: sent, before, state });
  }
  throw new Error("it did not end");
}

describe("a redrive's next step", () => {
  it("never passes the rate over any window, by more than a tenth of a second's worth", () => {
    fc.assert(
      fc.property(plans, worlds, (plan, world) => {
        const { sends } = play({ ...plan, failureShareMax: 1 }, world);
        const burst = Math.max(1, plan.ratePerSecond / 10);
        for (let from = 0; from < sends.length; from++) {
          let sum = 0;
          for (const { ms, n } of sends.slice(from)) {
            sum += n;
            const windowMs = ms - (sends[from] as { ms: number }).ms;
            assert.ok(sum <= (plan.ratePerSecond * windowMs) / 1_000 + burst + 1e-6, `${sum} in ${windowMs} ms`);
          }
        }
      }),
      { numRuns: 120 },
    );
  });

  it("sends nothing beyond the canary before every ending of the canary is known", () => {
    fc.assert(
      fc.property(plans, worlds, (plan, world) => {
        const { sends } = play(plan, world);
        let before = 0;
        for (const send of sends) {
          const beyond = before + send.n > plan.canary;
          // The send that is the first beyond it finds nobody's ending open.
          if (plan.canary > 0 && before <= plan.canary && beyond) expect(send.before.sent).toBe(0);
          before += send.n;
        }
      }),
      { numRuns: 120 },
    );
  });

  it("sends nothing before its delay is over, and what it sends first is no more than without one", () => {
    fc.assert(
      fc.property(plans, worlds, (plan, world) => {
        const { sends } = play(plan, world);
        for (const { ms } of sends) assert.ok(ms >= START_MS + plan.delayMs, `${ms - START_MS} of ${plan.delayMs} ms`);
        const burst = Math.max(1, Math.min(plan.rampFrom, plan.ratePerSecond) / 10);
        assert.ok((sends[0]?.n ?? 0) <= burst + 1e-6);
      }),
      { numRuns: 120 },
    );
  });

  it("stops at the bound, and sends nothing once the bound is passed", () => {
    fc.assert(
      fc.property(plans, worlds, (plan, world) => {
        const { sends, end, counts } = play(plan, world);
        for (const { before } of sends) {
          const known = before.healed + before.failed;
          if (known >= plan.failureMin && plan.failureShareMax < 1) {
            expect(before.failed / known).toBeLessThanOrEqual(plan.failureShareMax);
          }
        }
        if (end.kind === "stop") {
          expect(end.reason).toMatch(/failed, more than|no known ending/);
          expect(counts.waiting).toBeGreaterThan(0);
        }
      }),
      { numRuns: 120 },
    );
  });

  it("always ends, in a bounded number of steps, and done means that nothing waits", () => {
    fc.assert(
      fc.property(plans, worlds, (plan, world) => {
        const { end, counts } = play(plan, world);
        if (end.kind !== "done") return;
        expect(counts.waiting).toBe(0);
        if (end.reason === null) expect(counts.sent).toBe(0);
        else expect(end.reason).toContain(`${counts.sent} were sent 24 hours ago`);
      }),
      { numRuns: 120 },
    );
  });
});

const PLAN: RedrivePlan = { ...REDRIVE_DEFAULTS, canary: 2, ratePerSecond: 40, rampFrom: 5 };
const counts = (some: Partial<RedriveCounts>): RedriveCounts => {
  const zero = { waiting: 0, sent: 0, healed: 0, failed: 0, skipped: 0 };
  const all = { ...zero, ...some };
  return { selected: all.waiting + all.sent + all.healed + all.failed + all.skipped, ...all };
};

describe("the plan, step by step", () => {
  it("ramps by doubling each second, up to the rate", () => {
    const state = { ...firstState(START_MS), rampMs: START_MS, tokens: 0 };
    const perSecond = [0, 0, 0, 0, 0, 0];
    let at: StepState = state;
    let waiting = 10_000;
    for (let ms = START_MS; ms < START_MS + 6_000; ) {
      const { step, state: after } = nextStep({ ...PLAN, canary: 0 }, counts({ waiting }), at, ms);
      at = after;
      if (step.kind === "send") {
        const second = Math.floor((ms - START_MS) / 1_000);
        perSecond[second] = (perSecond[second] as number) + step.n;
        waiting -= step.n;
      } else ms += step.kind === "wait" ? step.ms : 1_000;
    }
    for (const [second, expected] of [5, 10, 20, 40, 40, 40].entries()) {
      expect(perSecond[second], `second ${second}`).toBeGreaterThanOrEqual(expected * 0.75);
      expect(perSecond[second], `second ${second}`).toBeLessThanOrEqual(expected + 4);
    }
  });

  it("starts the ramp over after a gap, and a gap is no credit", () => {
    const long = { ...firstState(START_MS), rampMs: START_MS - 60_000, tokens: 4 };
    const { state } = nextStep(PLAN, counts({ waiting: 100, healed: 50 }), long, START_MS + 3_600_000);
    expect(state.rampMs).toBe(START_MS + 3_600_000);
    expect(state.tokens).toBeLessThanOrEqual(1);
  });

  it("stops when the whole canary failed, although fewer than failureMin are known", () => {
    const { step, state } = nextStep(PLAN, counts({ waiting: 10, failed: 2 }), firstState(START_MS), START_MS + 500);
    expect(step).toEqual({
      kind: "stop",
      reason: "2 of 2 of the canary failed, more than the share of 0.5 that was allowed",
    });
    expect(state.stopped).toBe(true);
  });

  it("goes on at the share that is allowed, and stops above it", () => {
    const running = { ...firstState(START_MS), rampMs: START_MS };
    const half = counts({ waiting: 10, healed: 50, failed: 50 });
    expect(nextStep(PLAN, half, running, START_MS + 500).step.kind).not.toBe("stop");
    expect(nextStep(PLAN, { ...half, healed: 49, failed: 51 }, running, START_MS + 500).step.kind).toBe("stop");
  });

  it("judges a resumed one from where it stood, with a new canary", () => {
    const before = counts({ waiting: 10, failed: 2 });
    const state = restarted(before, START_MS);
    expect(nextStep(PLAN, before, state, START_MS).step).toEqual({ kind: "send", n: 1 });
    expect(nextStep(PLAN, counts({ waiting: 8, sent: 2, failed: 2 }), state, START_MS + 900).step.kind).toBe("wait");
    expect(nextStep(PLAN, counts({ waiting: 8, healed: 2, failed: 2 }), state, START_MS + 900).step.kind).toBe("send");
    expect(nextStep(PLAN, counts({ waiting: 8, failed: 4 }), state, START_MS + 900).step.kind).toBe("stop");
  });

  it("does not wait for ever: neither for the canary nor for the rest", () => {
    const late = START_MS + UNKNOWN_MS_MAX;
    const stuck = nextStep(PLAN, counts({ waiting: 5, sent: 2 }), firstState(START_MS), late).step;
    expect(stuck).toMatchObject({ kind: "stop", reason: expect.stringContaining("no known ending after 24 hours") });
    const rest = nextStep(PLAN, counts({ sent: 3, healed: 4 }), firstState(START_MS), late).step;
    expect(rest).toMatchObject({ kind: "done", reason: expect.stringContaining("3 were sent 24 hours ago") });
    expect(nextStep(PLAN, counts({ sent: 3 }), firstState(START_MS), late - 1).step.kind).toBe("wait");
  });

  it("survives a clock that was set back", () => {
    const state = { ...firstState(START_MS), rampMs: START_MS, tokens: 0 };
    const back = nextStep({ ...PLAN, canary: 0 }, counts({ waiting: 9 }), state, START_MS - 3_600_000);
    expect(back.step.kind).toBe("wait");
    const on = nextStep({ ...PLAN, canary: 0 }, counts({ waiting: 9 }), back.state, START_MS - 3_600_000 + 300);
    expect(on.step.kind).toBe("send");
  });
});

describe("what a redrive carries from one process to the next", () => {
  it("is read back as it was written, so that the ramp goes on where it was", () => {
    const state = { ...firstState(START_MS, 7), tokens: 3.5, rampMs: START_MS - 4_000, lastSentMs: START_MS - 90 };
    const known = counts({ waiting: 10, healed: 40 });
    expect(stateOf(stateText(state), known, START_MS + 50, 7)).toEqual(state);
    expect(stateOf(stateText({ ...state, stopped: true }), known, START_MS + 50, 7)).toEqual(restarted(known, START_MS + 50));
    expect(planOf(planText({ ...PLAN, carrier: "fallback" }))).toEqual({ ...PLAN, carrier: "fallback" });
  });

  it.each(["", "null", "[]", "{", '{"canary":-1,"ratePerSecond":1e9}', '{"canary":"many"}'])(
    "that cannot be read (%s) is the careful default",
    (text) => {
      expect(planOf(text)).toEqual({ ...REDRIVE_DEFAULTS, carrier: undefined });
      expect(stateOf(text, counts({ waiting: 10 }), START_MS)).toEqual(firstState(START_MS));
    },
  );
});
