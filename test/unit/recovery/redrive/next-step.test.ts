/**
 * The step function of redrives by property: whatever the plan, the receivers and the pace of the runner, the rate is never passed,
 * the canary goes first, the bound stops it, and it always ends.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  measured,
  nextStep,
  type StepState,
  stateOf,
  UNKNOWN_MS_MAX,
  verdictOf,
} from "../../../../src/recovery/redrive/next-step.ts";
import type { RedriveCounts, RedriveGroup } from "../../../../src/recovery/redrive/redrive.ts";
import type { Room } from "../../../../src/recovery/redrive/redrive-sql.ts";
import { planOf, REDRIVE_DEFAULTS, type RedrivePlan } from "../../../../src/recovery/redrive/request.ts";

const START_MS = 1_700_000_000_000;
const firstState = (nowMs: number, notBeforeMs = 0) => stateOf(null, nowMs, nowMs, notBeforeMs);

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

/** One group, as far as its verdict needs it; `canary`: how many of it are still to be sent. */
const group = (counts: RedriveCounts, more: Partial<RedriveGroup> = {}): RedriveGroup => ({
  ...{ ...counts, no: 1, groupId: 1, topic: "t/a", errorCode: null, verdict: null, reason: null, canary: 0 },
  ...{ baseHealed: 0, baseFailed: 0, ...more },
});

/** What the store says of groups, as its statement does. */
function roomOf(groups: readonly RedriveGroup[]): Room {
  const sum = (pick: (one: RedriveGroup) => number) => groups.reduce((total, one) => total + pick(one), 0);
  const left = (verdict: RedriveGroup["verdict"]) => groups.filter((one) => one.verdict === verdict && one.waiting > 0).length;
  return {
    open: sum(({ verdict, waiting, canary }) =>
      verdict === "healed" ? waiting : verdict === null ? Math.min(canary, waiting) : 0,
    ),
    healed: groups.filter(({ verdict }) => verdict === "healed").length,
    groups: groups.length,
    undecided: left(null),
    inconclusive: left("inconclusive"),
    failed: left("failed"),
    underWay: sum(({ verdict, sent }) => (verdict === "failed" ? 0 : sent)),
    reason: groups.find(({ verdict }) => verdict === "failed")?.reason ?? null,
  };
}

/** Plays a redrive of one group through, as the runner would. */
function play(plan: RedrivePlan, { endings, lateMs }: World): Run {
  const sends: Run["sends"] = [];
  let nowMs = START_MS;
  let state = firstState(nowMs, nowMs + plan.delayMs);
  let position = 0;
  const counts = { selected: endings.length, waiting: endings.length, sent: 0, healed: 0, failed: 0, skipped: 0 };
  const open: { knownMs: number; fails: boolean }[] = [];
  let canary = plan.canary || Number.POSITIVE_INFINITY;
  let judged: Pick<RedriveGroup, "verdict" | "reason"> = { verdict: null, reason: null };
  for (let steps = 1; steps <= 100_000; steps++) {
    for (const one of open.filter(({ knownMs }) => knownMs <= nowMs)) {
      open.splice(open.indexOf(one), 1);
      counts.sent--;
      counts[one.fails ? "failed" : "healed"]++;
    }
    judged = verdictOf(plan, group(counts, { canary, ...judged }), false) ?? judged;
    const next = nextStep(plan, counts, roomOf([group(counts, { canary, ...judged })]), state, nowMs);
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
    canary = Math.max(0, canary - sent);
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

/** All of it in one group that healed. */
const running = (some: RedriveCounts): Room => roomOf([group(some, { verdict: "healed" })]);

describe("the plan, step by step", () => {
  it("ramps by doubling each second, up to the rate, and measures it", () => {
    const state = { ...firstState(START_MS), rampMs: START_MS, tokens: 0 };
    const perSecond = [0, 0, 0, 0, 0, 0];
    let at: StepState = state;
    let waiting = 10_000;
    for (let ms = START_MS; ms < START_MS + 30_000; ) {
      const left = counts({ waiting });
      const { step, state: after } = nextStep({ ...PLAN, canary: 0 }, left, running(left), at, ms);
      at = after;
      if (step.kind === "send") {
        const second = Math.floor((ms - START_MS) / 1_000);
        perSecond[second] = (perSecond[second] ?? 0) + step.n;
        waiting -= step.n;
      } else ms += step.kind === "wait" ? step.ms : 1_000;
    }
    for (const [second, expected] of [5, 10, 20, 40, 40, 40].entries()) {
      expect(perSecond[second], `second ${second}`).toBeGreaterThanOrEqual(expected * 0.75);
      expect(perSecond[second], `second ${second}`).toBeLessThanOrEqual(expected + 4);
    }
    expect(measured(at, at.lastSentMs)).toBeGreaterThan(36);
    expect(measured(at, at.lastSentMs)).toBeLessThan(44);
    expect(measured(at, at.lastSentMs + 60_000)).toBeLessThan(0.01);
  });

  it("EV-9: with a concurrency of five never more are on their way, and each that ends lets the next one go", () => {
    const plan = { ...PLAN, canary: 0, concurrency: 5 };
    let at: StepState = { ...firstState(START_MS), rampMs: START_MS - 60_000 };
    const left = { ...counts({ waiting: 40 }) } as { -readonly [K in keyof RedriveCounts]: RedriveCounts[K] };
    const most: number[] = [];
    for (let ms = START_MS, steps = 0; left.waiting > 0 && steps < 10_000; steps++) {
      const { step, state } = nextStep(plan, left, running(left), at, ms);
      at = state;
      if (step.kind === "send") {
        left.waiting -= step.n;
        left.sent += step.n;
        most.push(left.sent);
        continue;
      }
      assert.ok(step.kind === "wait");
      ms += step.ms;
      // One ends for each wait, however long.
      if (left.sent === 5) [left.sent, left.healed] = [left.sent - 1, left.healed + 1];
    }
    expect([left.waiting, Math.max(...most)]).toEqual([0, 5]);
    const five = counts({ waiting: 1, sent: 5 });
    const stuck = nextStep(plan, five, running(five), firstState(START_MS), START_MS + 24 * 3_600_000);
    expect(stuck.step).toMatchObject({ kind: "stop", reason: expect.stringContaining("5 of at most 5") });
  });

  it("starts the ramp over after a gap, and a gap is no credit", () => {
    const long = { ...firstState(START_MS), rampMs: START_MS - 60_000, tokens: 4 };
    const left = counts({ waiting: 100, healed: 50 });
    const { state } = nextStep(PLAN, left, running(left), long, START_MS + 3_600_000);
    expect(state.rampMs).toBe(START_MS + 3_600_000);
    expect(state.tokens).toBeLessThanOrEqual(1);
  });

  it("does not wait for ever: neither for the canary nor for the rest", () => {
    const late = START_MS + UNKNOWN_MS_MAX;
    const canary = counts({ waiting: 5, sent: 2 });
    const stuck = nextStep(PLAN, canary, roomOf([group(canary)]), firstState(START_MS), late).step;
    expect(stuck).toMatchObject({ kind: "stop", reason: expect.stringContaining("no known ending after 24 hours") });
    const all = counts({ sent: 3, healed: 4 });
    const rest = nextStep(PLAN, all, running(all), firstState(START_MS), late).step;
    expect(rest).toMatchObject({ kind: "done", reason: expect.stringContaining("3 were sent 24 hours ago") });
    expect(nextStep(PLAN, all, running(all), firstState(START_MS), late - 1).step.kind).toBe("wait");
  });

  it("survives a clock that was set back", () => {
    const state = { ...firstState(START_MS), rampMs: START_MS, tokens: 0 };
    const left = counts({ waiting: 9 });
    const back = nextStep({ ...PLAN, canary: 0 }, left, running(left), state, START_MS - 3_600_000);
    expect(back.step.kind).toBe("wait");
    const on = nextStep({ ...PLAN, canary: 0 }, left, running(left), back.state, START_MS - 3_600_000 + 300);
    expect(on.step.kind).toBe("send");
  });
});

describe("R7: what a group is judged by", () => {
  it("its whole canary, although fewer than failureMin are known", () => {
    expect(verdictOf(PLAN, group(counts({ waiting: 10, failed: 1, sent: 1 })), false)).toBeNull();
    expect(verdictOf(PLAN, group(counts({ waiting: 10, failed: 2 })), false)).toEqual({
      verdict: "failed",
      reason: "2 of 2 of the canary failed, more than the share of 0.5 that was allowed",
    });
    expect(verdictOf(PLAN, group(counts({ waiting: 10, healed: 1, failed: 1 })), false)).toMatchObject({ verdict: "healed" });
    expect(verdictOf(PLAN, group(counts({ waiting: 10, failed: 2 }), { canary: 3 }), false)).toBeNull();
  });

  it("afterwards the share that is allowed, and from where it stood when it was resumed", () => {
    const half = counts({ waiting: 10, healed: 50, failed: 50 });
    expect(verdictOf(PLAN, group(half, { verdict: "healed" }), false)).toBeNull();
    const worse = { ...half, healed: 49, failed: 51 };
    expect(verdictOf(PLAN, group(worse, { verdict: "healed" }), false)).toMatchObject({ verdict: "failed" });
    const resumed = group(counts({ waiting: 8, healed: 2, failed: 2 }), { baseFailed: 2 });
    expect(verdictOf(PLAN, resumed, false)).toMatchObject({ verdict: "healed" });
  });

  it("a group that fits into its canary has a verdict in the end", () => {
    expect(verdictOf(PLAN, group(counts({ healed: 1, failed: 3 }), { canary: 1 }), false)).toMatchObject({ verdict: "failed" });
    expect(verdictOf(PLAN, group(counts({ healed: 1 }), { canary: 1 }), false)).toMatchObject({ verdict: "healed" });
  });

  it("R8: while its receiver is down it is neither healed nor failed", () => {
    expect(verdictOf(PLAN, group(counts({ waiting: 10, failed: 2 })), true)).toMatchObject({ verdict: "inconclusive" });
    expect(verdictOf(PLAN, group(counts({ waiting: 10, healed: 2 })), true)).toBeNull();
  });

  it("one that failed stops alone: the others go on, and all stops once nothing else is left", () => {
    const failed = group(counts({ waiting: 9, failed: 2 }), { verdict: "failed", reason: "2 of 2 failed" });
    const good = group(counts({ waiting: 5 }), { verdict: "healed" });
    const state = { ...firstState(START_MS), tokens: 1 };
    const all = counts({ waiting: 14, failed: 2 });
    expect(nextStep(PLAN, all, roomOf([failed, good]), state, START_MS).step.kind).toBe("send");
    const under = group(counts({ sent: 5 }), { verdict: "healed" });
    expect(nextStep(PLAN, counts({ waiting: 9, failed: 2, sent: 5 }), roomOf([failed, under]), state, START_MS).step.kind).toBe(
      "wait",
    );
    const done = group(counts({ healed: 5 }), { verdict: "healed" });
    const last = counts({ waiting: 9, failed: 2, healed: 5 });
    const stop = nextStep(PLAN, last, roomOf([failed, done]), state, START_MS).step;
    expect(stop).toMatchObject({ kind: "stop", reason: expect.stringContaining("1 of 2 groups failed") });
    const down = group(counts({ waiting: 9, failed: 2 }), { verdict: "inconclusive" });
    expect(nextStep(PLAN, last, roomOf([down, done]), state, START_MS).step.kind).toBe("wait");
  });
});

describe("what a redrive carries from one process to the next", () => {
  it("is read back as it was written, so that the ramp goes on where it was", () => {
    const state = { ...firstState(START_MS, 7), tokens: 3.5, rampMs: START_MS - 4_000, lastSentMs: START_MS - 90 };
    expect(stateOf(JSON.stringify(state), START_MS + 50, START_MS - 9_000, 7)).toEqual(state);
    expect(planOf(JSON.stringify({ ...PLAN, carrier: "fallback" }))).toEqual({ ...PLAN, carrier: "fallback" });
  });

  it.each(["", "null", "[]", "{", '{"canary":-1,"ratePerSecond":1e9}', '{"canary":"many"}'])(
    "that cannot be read (%s) is the careful default",
    (text) => {
      expect(planOf(text)).toEqual({ ...REDRIVE_DEFAULTS, carrier: undefined });
      expect(stateOf(text, START_MS)).toEqual({
        tokens: 1,
        atMs: START_MS,
        rampMs: null,
        lastSentMs: START_MS,
        rate: 0,
        notBeforeMs: 0,
      });
    },
  );

  it("that was never kept does not begin the wait for unknown endings anew", () => {
    const state = stateOf(null, START_MS + UNKNOWN_MS_MAX, START_MS);
    const sent = counts({ sent: 3 });
    const under = roomOf([group(sent, { verdict: "healed" })]);
    expect(nextStep(PLAN, sent, under, state, START_MS + UNKNOWN_MS_MAX).step).toMatchObject({
      kind: "done",
      reason: expect.stringContaining("3 were sent 24 hours ago or more"),
    });
    expect(stateOf(null, START_MS, START_MS + 5).lastSentMs, "of a clock that is ahead").toBe(START_MS);
  });
});
