/** The one confidence: its properties, decay, stand-ins, ranking, the gates and bounded exploration (EV-47, EV-48, DR-32). */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { confidence, PRIOR_WITHOUT_RULE } from "../../../src/recovery/confidence/confidence.ts";
import { actionToTry } from "../../../src/recovery/confidence/explore.ts";
import {
  type AutoExecution,
  autoExecutionRefusals,
  CONFIDENCE_GATES,
  isSelectable,
} from "../../../src/recovery/confidence/gates.ts";
import {
  type ActionResult,
  counted,
  decayed,
  HALF_LIFE_MS,
  merged,
  type OutcomeCounts,
  outcomeCounts,
  weightOf,
} from "../../../src/recovery/confidence/outcome-counts.ts";
import { rankActions } from "../../../src/recovery/confidence/rank.ts";

const NOW = 1_760_000_000_000;
const prior = fc.double({ min: 0, max: 1, noNaN: true });
const amount = fc.double({ min: 0, max: 1e6, noNaN: true });
const time = fc.integer({ min: NOW - 20 * HALF_LIFE_MS, max: NOW });
const counts = fc.record({ successes: amount, failures: amount, at: time });
const maybe = fc.option(counts, { nil: undefined });
const evidence = fc.record({ own: maybe, topic: maybe, global: maybe });
const close = (a: number, b: number): boolean => Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b));

describe("the posterior mean", () => {
  it("without outcomes is the rule's score, to the last bit", () => {
    fc.assert(fc.property(prior, (score) => confidence(score, {}, NOW).confidence === score));
  });

  it("a score is worth three observations", () => {
    const own = { successes: 3, failures: 0, at: NOW };
    expect(confidence(0.5, { own }, NOW).confidence).toBeCloseTo(0.75, 12);
    expect(confidence(0.85, { own: { successes: 0, failures: 7, at: NOW } }, NOW).confidence).toBeCloseTo(0.255, 12);
    expect(confidence(0.5, { own }, NOW).contributions).toEqual([
      { from: "prior", weight: 3, mean: 0.5 },
      { from: "own", weight: 3, mean: 1 },
    ]);
  });

  it("lies in 0 to 1 for any evidence", () => {
    fc.assert(
      fc.property(prior, evidence, (score, given) => {
        const { confidence: mean } = confidence(score, given, NOW);
        expect(mean >= 0 && mean <= 1).toBe(true);
      }),
    );
  });

  it("rises with a success and falls with a failure, whatever stands in", () => {
    fc.assert(
      fc.property(prior, evidence, (score, given) => {
        const before = confidence(score, given, NOW).confidence;
        const better = confidence(score, { ...given, own: counted(given.own, "healed", NOW) }, NOW).confidence;
        const worse = confidence(score, { ...given, own: counted(given.own, "failed", NOW) }, NOW).confidence;
        expect(better >= before - 1e-9).toBe(true);
        expect(worse <= before + 1e-9).toBe(true);
      }),
    );
  });

  it("comes near the truth when there is much of it, and stays near the score when there is little", () => {
    expect(confidence(0.1, { own: { successes: 900, failures: 100, at: NOW } }, NOW).confidence).toBeCloseTo(0.9, 2);
    expect(confidence(0.8, { own: { successes: 0, failures: 0.01, at: NOW } }, NOW).confidence).toBeCloseTo(0.8, 2);
  });

  it("refuses what is no score and no count, since a guess would hide it", () => {
    for (const score of [-0.1, 1.1, Number.NaN]) expect(() => confidence(score, {}, NOW)).toThrow(/no probability/);
    const bad: [number, number, number][] = [
      [-1, 0, NOW],
      [0, Number.NaN, NOW],
      [Number.POSITIVE_INFINITY, 0, NOW],
      [0, 0, Number.NaN],
    ];
    for (const [successes, failures, at] of bad) {
      expect(() => outcomeCounts(successes, failures, at)).toThrow(/no counts/);
      expect(() => confidence(0.5, { own: { successes, failures, at } }, NOW)).toThrow(/no counts/);
    }
  });
});

describe("stand-ins", () => {
  const sure: OutcomeCounts = { successes: 1_000, failures: 0, at: NOW };
  const hopeless: OutcomeCounts = { successes: 0, failures: 1_000, at: NOW };

  it("count as three observations at most, the topic before all topics", () => {
    expect(confidence(0.5, { topic: sure }, NOW).confidence).toBeCloseTo(0.75, 12);
    expect(confidence(0.5, { global: sure }, NOW).confidence).toBeCloseTo(0.75, 12);
    expect(confidence(0.5, { topic: sure, global: hopeless }, NOW).confidence).toBeCloseTo(0.75, 12);
    const one = { successes: 1, failures: 0, at: NOW };
    expect(confidence(0.5, { topic: one, global: hopeless }, NOW).confidence).toBeCloseTo(2.5 / 6, 12);
  });

  it("make room one for one, and are gone after three outcomes of the fingerprint", () => {
    const own = (failures: number) => ({ successes: 0, failures, at: NOW });
    const means = [0, 1, 2, 3, 4].map((failures) => confidence(0.5, { own: own(failures), topic: sure }, NOW).confidence);
    expect(means.map((mean) => mean.toFixed(4))).toEqual(["0.7500", "0.5833", "0.4167", "0.2500", "0.2143"]);
    expect(confidence(0.5, { own: own(3), topic: sure, global: sure }, NOW).contributions).toHaveLength(2);
  });
});

describe("decay", () => {
  it("EV-48: halves in 30 days", () => {
    const old = { successes: 8, failures: 4, at: NOW };
    expect(decayed(old, NOW + 30 * 24 * 3_600_000)).toEqual({ successes: 4, failures: 2, at: NOW + HALF_LIFE_MS });
    expect(weightOf(decayed(old, NOW + 2 * HALF_LIFE_MS))).toBeCloseTo(3, 12);
  });

  it("forgets: in time the answer comes back to the score, and never moves away from it", () => {
    fc.assert(
      fc.property(prior, counts, fc.nat(40), fc.nat(40), (score, own, earlier, more) => {
        const off = (lives: number): number =>
          Math.abs(confidence(score, { own }, NOW + lives * HALF_LIFE_MS).confidence - score);
        expect(off(earlier + more) <= off(earlier) + 1e-9).toBe(true);
        expect(off(60) < 1e-6).toBe(true);
      }),
    );
  });

  it("in two steps is decay in one, and a clock that runs behind changes nothing", () => {
    fc.assert(
      fc.property(counts, fc.nat(10 * HALF_LIFE_MS), fc.nat(10 * HALF_LIFE_MS), (given, first, second) => {
        const steps = decayed(decayed(given, NOW + first), NOW + first + second);
        const once = decayed(given, NOW + first + second);
        expect(close(steps.successes, once.successes) && close(steps.failures, once.failures)).toBe(true);
        expect(decayed(given, given.at - first)).toEqual(given);
      }),
    );
  });
});

describe("counting", () => {
  it("does not depend on the order, nor on how the outcomes were divided among processes", () => {
    const result = fc.constantFrom<ActionResult>("healed", "failed");
    const outcomes = fc.array(fc.record({ result, at: time }), { minLength: 1, maxLength: 20 });
    const count = (list: readonly { result: ActionResult; at: number }[]): OutcomeCounts | undefined =>
      list.reduce<OutcomeCounts | undefined>((sum, each) => counted(sum, each.result, each.at), undefined);
    fc.assert(
      fc.property(outcomes, fc.nat(20), fc.infiniteStream(fc.nat(1_000)), (list, cut, keys) => {
        const shuffled = list.map((each) => ({ each, key: keys.next().value ?? 0 })).sort((a, b) => a.key - b.key);
        const [one, other] = [count(list.slice(0, cut)), count(list.slice(cut))];
        const parts = one === undefined || other === undefined ? (one ?? other) : merged(other, one);
        const whole = decayed(count(list) as OutcomeCounts, NOW);
        for (const each of [count(shuffled.map((entry) => entry.each)), parts]) {
          const same = decayed(each as OutcomeCounts, NOW);
          expect(close(same.successes, whole.successes) && close(same.failures, whole.failures)).toBe(true);
        }
      }),
    );
  });
});

describe("ranking", () => {
  const proposals = [{ action: "first", score: 0.4 }, { action: "second", score: 0.9 }, { action: "unruled" }];
  const rank = (given: Record<string, OutcomeCounts>) =>
    rankActions(proposals, (action) => ({ own: given[action] }), NOW).map(({ action }) => action);

  it("is the order of the rules as long as nothing is known, whatever the scores are", () => {
    expect(rank({})).toEqual(["first", "second", "unruled"]);
    const shown = rankActions(proposals, () => ({}), NOW).map(({ confidence: mean }) => mean);
    expect(shown).toEqual([0.4, 0.9, PRIOR_WITHOUT_RULE]);
    fc.assert(
      fc.property(fc.array(prior, { maxLength: 10 }), (scores) => {
        const given = scores.map((score, i) => ({ action: `a${i}`, score }));
        expect(rankActions(given, () => ({}), NOW).map(({ action }) => action)).toEqual(given.map(({ action }) => action));
      }),
    );
  });

  it("outcomes from elsewhere count only for actions that a rule proposes", () => {
    const elsewhere = { topic: { successes: 50, failures: 0, at: NOW }, global: { successes: 500, failures: 0, at: NOW } };
    const list = rankActions(proposals, (action) => (action === "first" ? {} : elsewhere), NOW);
    expect(list.map(({ action, confidence: mean }) => [action, mean])).toEqual([
      ["second", expect.closeTo(0.95, 9)],
      ["first", 0.4],
      ["unruled", PRIOR_WITHOUT_RULE],
    ]);
  });

  it("one success of the first does not turn the list over; outcomes move an action to where it belongs", () => {
    expect(rank({ first: { successes: 1, failures: 0, at: NOW } })).toEqual(["first", "second", "unruled"]);
    expect(rank({ first: { successes: 0, failures: 1, at: NOW } })).toEqual(["second", "first", "unruled"]);
    expect(rank({ unruled: { successes: 9, failures: 0, at: NOW } })).toEqual(["unruled", "first", "second"]);
  });
});

describe("gates", () => {
  const good: AutoExecution = {
    enabled: true,
    confidence: 0.8,
    automated: true,
    safe: true,
    needsApproval: false,
    insideBudget: true,
    insideRate: true,
    ofRecovery: false,
    ofOverflow: false,
  };

  it("REC-18: selects from 0.3 on, or from the value that is set", () => {
    expect(CONFIDENCE_GATES).toEqual({ select: 0.3, autoExecute: 0.8 });
    expect([0.29, 0.3, 1].map((each) => isSelectable(each))).toEqual([false, true, true]);
    expect(isSelectable(0.5, 0.6)).toBe(false);
    expect(isSelectable(Number.NaN)).toBe(false);
  });

  it("DR-32: runs without a person only when everything speaks for it, and is off by default", () => {
    expect(autoExecutionRefusals(good)).toEqual([]);
    const against: [Partial<AutoExecution>, string][] = [
      [{ enabled: false }, "disabled"],
      [{ enabled: undefined }, "disabled"],
      [{ confidence: 0.79 }, "low_confidence"],
      [{ confidence: Number.NaN }, "low_confidence"],
      [{ automated: false }, "not_automated"],
      [{ safe: false }, "not_safe"],
      [{ needsApproval: true }, "needs_approval"],
      [{ insideBudget: false }, "over_budget"],
      [{ insideRate: false }, "over_rate"],
      [{ ofRecovery: true }, "recovery_of_recovery"],
      [{ ofOverflow: true }, "overflow_group"],
    ];
    for (const [change, reason] of against) expect(autoExecutionRefusals({ ...good, ...change })).toEqual([reason]);
    expect(autoExecutionRefusals({ ...good, enabled: false, safe: false })).toEqual(["disabled", "not_safe"]);
  });
});

describe("bounded exploration", () => {
  const ranked = rankActions(
    [{ action: "good", score: 0.6 }, { action: "risky", score: 0.55 }, { action: "other" }],
    () => ({}),
    NOW,
  );
  const explore = (explored: number, tries: number, shareMax = 0.25) =>
    actionToTry(ranked, { explored, tries, shareMax, isSafe: (action) => action !== "risky" });

  it("tries only safe actions, only within its share, and nothing when it is off", () => {
    expect(explore(0, 0)).toBe("good");
    expect(explore(0, 3)).toBe(explore(0, 3));
    expect(["good", "other"]).toContain(explore(0, 3));
    expect(explore(1, 3)).toBe("good");
    expect(explore(0, 1_000, 0)).toBe("good");
    expect(actionToTry([], { explored: 0, tries: 0, shareMax: 1, isSafe: () => true })).toBeUndefined();
  });

  it("leaves an action alone that has shown to be worse", () => {
    const known = rankActions(
      [{ action: "good", score: 0.8 }, { action: "other" }],
      (action) => (action === "other" ? { own: { successes: 0, failures: 30, at: NOW } } : {}),
      NOW,
    );
    expect(actionToTry(known, { explored: 0, tries: 100, shareMax: 0.25, isSafe: () => true })).toBe("good");
  });

  it("finds the better action where the suggestion alone never would, and spends no more than its share", () => {
    const truth: Record<string, number> = { usual: 4, better: 9 };
    const given: Record<string, OutcomeCounts> = {};
    let explored = 0;
    let suggested = "";
    for (let tries = 0; tries < 100; tries++) {
      const list = rankActions(
        [{ action: "usual", score: 0.6 }, { action: "better" }],
        (action) => ({ own: given[action] }),
        NOW,
      );
      suggested = list[0]?.action ?? "";
      const action = actionToTry(list, { explored, tries, shareMax: 0.25, isSafe: () => true }) ?? "";
      if (action !== suggested) explored++;
      // Four, or nine, of every ten heal: no randomness is needed to show it.
      const nth = weightOf(given[action] ?? { successes: 0, failures: 0, at: NOW });
      given[action] = counted(given[action], (nth * 7) % 10 < (truth[action] ?? 0) ? "healed" : "failed", NOW);
    }
    expect(suggested).toBe("better");
    expect(explored).toBeLessThanOrEqual(25);
  });
});
