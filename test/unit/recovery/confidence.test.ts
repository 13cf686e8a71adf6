/** The one confidence: its properties, decay, levels, ranking, the gates and bounded exploration (EV-47, EV-48, DR-32). */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CatalogueAction, createCatalogue } from "../../../src/recovery/actions/catalogue.ts";
import { ACTIONS as ACTIONS_SHIPPED } from "../../../src/recovery/actions/shipped.ts";
import { autoExecutionOf, toTry } from "../../../src/recovery/candidates/auto-execution.ts";
import { actionToTry } from "../../../src/recovery/confidence/explore.ts";
import { CONFIDENCE_GATES, isSelectable } from "../../../src/recovery/confidence/gates.ts";
import { evidenceOf, repairNotes, totalsOf } from "../../../src/recovery/confidence/levels.ts";
import type { Observation } from "../../../src/recovery/confidence/observation.ts";
import {
  decayed,
  HALF_LIFE_MS,
  merged,
  type OutcomeCounts,
  outcomeCounts,
  weightOf,
} from "../../../src/recovery/confidence/outcome-counts.ts";
import { PRIOR_WITHOUT_RULE } from "../../../src/recovery/confidence/priors.ts";
import { rankActions } from "../../../src/recovery/confidence/rank.ts";
import { OVERFLOW } from "../../../src/recovery/fingerprint/learner.ts";

type Asked = Parameters<typeof autoExecutionOf>[0];

const NOW = 1_760_000_000_000;
const prior = fc.double({ min: 0, max: 1, noNaN: true });
const amount = fc.double({ min: 0, max: 1e6, noNaN: true });
const time = fc.integer({ min: NOW - 20 * HALF_LIFE_MS, max: NOW });
const counts = fc.record({ successes: amount, failures: amount, at: time });
const maybe = fc.option(counts, { nil: undefined });
const evidence = fc.record({ own: maybe, cause: maybe, all: maybe });
const close = (a: number, b: number): boolean => Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b));
const of = (successes: number, failures: number): OutcomeCounts => ({ successes, failures, at: NOW });
const ACTIONS = ["first", "second", "third", "fourth"];

/** How sure the first of four actions is, of which a rule proposes it alone. */
function confidence(
  score: number,
  given: Parameters<typeof rankActions>[1] extends (action: string) => infer E ? E : never,
  at = NOW,
): number {
  const proposals = ACTIONS.map((action, i) => (i === 0 ? { action, score } : { action }));
  const ranked = rankActions(proposals, (action) => (action === "first" ? given : {}), at);
  return ranked.find(({ action }) => action === "first")?.confidence ?? Number.NaN;
}

describe("the confidence", () => {
  it("without outcomes is the rule's score, to the last bit", () => {
    fc.assert(fc.property(prior, (score) => confidence(score, {}) === score));
  });

  it("lies in 0 to 1 for any evidence", () => {
    fc.assert(
      fc.property(prior, evidence, (score, given) => {
        const mean = confidence(score, given);
        expect(mean >= 0 && mean <= 1).toBe(true);
      }),
    );
  });

  it("rises with a success and falls with a failure", () => {
    const score = fc.double({ min: 0.3, max: 0.9, noNaN: true });
    fc.assert(
      fc.property(score, fc.nat(12), fc.nat(12), (given, successes, failures) => {
        const before = confidence(given, { own: of(successes, failures) });
        expect(confidence(given, { own: of(successes, failures + 1) })).toBeLessThan(before);
        if (before < 0.9) expect(confidence(given, { own: of(successes + 1, failures) })).toBeGreaterThan(before - 0.01);
      }),
    );
  });

  it("comes near the truth when there is much of it, and stays near the score when there is little", () => {
    expect(confidence(0.1, { own: of(900, 100) })).toBeCloseTo(0.9, 2);
    expect(confidence(0.8, { own: of(0, 0.01) })).toBeCloseTo(0.8, 2);
  });

  it("of one action speaks for the others when it fails, and against them when it heals", () => {
    const proposals = [{ action: "first", score: 0.8 }, { action: "other" }];
    const other = (own: OutcomeCounts) =>
      rankActions(proposals, (action) => (action === "first" ? { own } : {}), NOW).find(({ action }) => action === "other");
    expect(other(of(0, 4))?.belief.cure).toBeGreaterThan(1.5 * (other(of(0, 0))?.belief.cure ?? 1));
    expect(other(of(4, 0))?.belief.cure).toBeLessThan(other(of(0, 0))?.belief.cure ?? 0);
  });

  it("does not take the last action left for the cure: there may be none", () => {
    const tried = ACTIONS.map((action) => ({ action, score: 0.5 }));
    const last = rankActions(tried, (action) => (action === "fourth" ? {} : { own: of(0, 6) }), NOW)[0];
    expect(last?.action).toBe("fourth");
    expect(last?.confidence).toBeLessThan(CONFIDENCE_GATES.autoExecute);
  });

  it("refuses what is no score and no count, since a guess would hide it", () => {
    for (const score of [-0.1, 1.1, Number.NaN]) expect(() => confidence(score, {})).toThrow(/no probability/);
    const bad: [number, number, number][] = [
      [-1, 0, NOW],
      [0, Number.NaN, NOW],
      [Number.POSITIVE_INFINITY, 0, NOW],
      [0, 0, Number.NaN],
    ];
    for (const [successes, failures, at] of bad) {
      expect(() => outcomeCounts(successes, failures, at)).toThrow(/no counts/);
      expect(() => confidence(0.5, { own: { successes, failures, at } })).toThrow(/no counts/);
    }
  });
});

describe("decay", () => {
  it("EV-48: halves in 30 days", () => {
    const old = of(8, 4);
    expect(decayed(old, NOW + 30 * 24 * 3_600_000)).toEqual({ successes: 4, failures: 2, at: NOW + HALF_LIFE_MS });
    expect(weightOf(decayed(old, NOW + 2 * HALF_LIFE_MS))).toBeCloseTo(3, 12);
    const young = { successes: 1, failures: 0, at: NOW + HALF_LIFE_MS };
    for (const [one, other] of [[old, young] as const, [young, old] as const]) {
      expect(merged(one, other)).toEqual({ successes: 5, failures: 2, at: young.at });
    }
  });

  it("forgets: in time the answer comes back to the score", () => {
    fc.assert(
      fc.property(prior, counts, (score, own) => {
        expect(Math.abs(confidence(score, { own }, NOW + 60 * HALF_LIFE_MS) - score) < 1e-6).toBe(true);
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

  it("adds up to the same in any order", () => {
    fc.assert(
      fc.property(fc.array(counts, { minLength: 2, maxLength: 10 }), (list) => {
        const sum = (given: readonly OutcomeCounts[]) =>
          decayed(given.reduce<OutcomeCounts | undefined>(merged, undefined) as OutcomeCounts, NOW);
        const [one, other] = [sum(list), sum([...list].reverse())];
        expect(close(one.successes, other.successes) && close(one.failures, other.failures)).toBe(true);
      }),
    );
  });
});

const RETRY = "retry_exponential";
const seen = (fields: Partial<Observation> = {}): Observation => ({
  groupId: 1,
  cause: "timeout",
  action: RETRY,
  healed: 0,
  failed: 0,
  byPerson: false,
  repair: null,
  breakerOpen: false,
  deliveredSince: true,
  downMs: null,
  at: NOW,
  ...fields,
});
/** The confidence of a retry that a rule proposes with 0.85, for a group of which nothing is known. */
function elsewhere(observations: readonly Observation[], cause = "timeout"): number {
  const known = new Map(evidenceOf(observations, { groupId: 99, cause }, NOW).map((each) => [each.action, each]));
  const proposals = [{ action: RETRY, score: 0.85 }, { action: "notify_ops" }, { action: "skip_task" }];
  return rankActions(proposals, (action) => known.get(action) ?? {}, NOW).find(({ action }) => action === RETRY)?.confidence ?? 0;
}

describe("observations", () => {
  it("R2: an execution weighs one, whatever its size", () => {
    const own = (list: Observation[]) => evidenceOf(list, { groupId: 1, cause: "timeout" }, NOW)[0]?.own;
    expect(own([seen({ failed: 5 }), seen({ healed: 286 })])).toEqual(of(1, 1));
    expect(own([seen({ healed: 3, failed: 1 })])).toEqual(of(0.75, 0.25));
  });

  it("R1: what healed after a repair is told, and counts for nothing", () => {
    const said = [seen({ healed: 286, repair: "renewed the key" })];
    const needed = [seen({ cause: "auth_or_permission", byPerson: true, healed: 286 })];
    for (const list of [said, needed]) {
      const [found] = evidenceOf(list, { groupId: 1, cause: "auth_or_permission" }, NOW);
      expect(found).toMatchObject({ afterRepair: { executions: 1, healed: 286, failed: 0 } });
      expect(found?.own).toBeUndefined();
      expect(totalsOf(list)).toEqual([]);
      expect(elsewhere(list)).toBe(0.85);
    }
    expect(repairNotes(evidenceOf(said, { groupId: 1, cause: null }, NOW))).toEqual([
      `${RETRY} after a repair healed 286 of 286 messages in 1 execution (renewed the key); this does not count for ${RETRY} alone`,
    ]);
    // What ran by itself, and what failed, is the action's own; so is a person's retry of what may heal alone.
    for (const each of [
      seen({ cause: "auth_or_permission", healed: 3 }),
      seen({ cause: "auth_or_permission", byPerson: true, failed: 5 }),
      seen({ byPerson: true, healed: 5 }),
    ])
      expect(weightOf(evidenceOf([each], { groupId: 1, cause: each.cause }, NOW)[0]?.own ?? of(0, 0))).toBe(1);
  });

  it("R3: one failed execution elsewhere moves nothing, one outage neither, however many groups it touches", () => {
    expect(elsewhere([seen({ failed: 5 })])).toBe(0.85);
    expect(elsewhere([seen({ failed: 5 })], "outage")).toBe(0.85);
    const outage = Array.from({ length: 30 }, (_, i) => seen({ groupId: i + 1, failed: 5, deliveredSince: false }));
    expect(elsewhere(outage)).toBe(0.85);
    expect(elsewhere(outage.map((each) => ({ ...each, deliveredSince: true, breakerOpen: true })))).toBe(0.85);
    // Half of them: no more healed than failed.
    expect(elsewhere(outage.map((each) => ({ ...each, healed: 5 })))).toBe(0.85);
  });

  it("R3: what many kinds of one cause show counts for that cause, and hardly for another", () => {
    const many = Array.from({ length: 30 }, (_, i) => seen({ groupId: i + 1, failed: 5 }));
    expect(elsewhere(many)).toBeLessThan(0.6);
    expect(elsewhere(many, "network")).toBeGreaterThan(0.75);
    // Until it is long ago.
    expect(elsewhere(many.map((each) => ({ ...each, at: NOW - 30 * HALF_LIFE_MS })))).toBe(0.85);
  });

  it("of a kind that is tried often have one voice on the levels above", () => {
    const often = Array.from({ length: 200 }, () => seen({ failed: 5 }));
    const [found] = evidenceOf([...often, seen({ groupId: 2, healed: 1 })], { groupId: 99, cause: "timeout" }, NOW);
    expect(weightOf(found?.cause ?? of(0, 0))).toBeLessThan(1.5);
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

  it("one outcome does not turn the list over; outcomes move an action to where it belongs", () => {
    expect(rank({ first: of(1, 0) })).toEqual(["first", "second", "unruled"]);
    expect(rank({ first: of(0, 4) })).toEqual(["second", "unruled", "first"]);
    expect(rank({ unruled: of(9, 0) })[0]).toBe("unruled");
  });

  it("keeps to the likely cure until another action has healed a few times", () => {
    const many = [...proposals, ...["a", "b", "c", "d", "e", "f"].map((action) => ({ action }))];
    const firstAfter = (healed: number) =>
      rankActions(many, (action) => (action === "unruled" ? { own: of(healed, 0) } : {}), NOW)[0];
    const two = rankActions(many, (action) => (action === "unruled" ? { own: of(2, 0) } : {}), NOW);
    const heals = (name: string) => two.find(({ action }) => action === name)?.belief.heals ?? 0;
    expect(heals("unruled")).toBeGreaterThan(heals("first"));
    expect(firstAfter(2)?.action).toBe("first");
    expect(firstAfter(4)?.action).toBe("unruled");
  });
});

describe("gates", () => {
  const retry = {
    ...ACTIONS_SHIPPED.find(({ actionCode }) => actionCode === "retry_exponential"),
    isActive: true,
  } as CatalogueAction;
  const good: Asked = {
    settings: { autoExecute: true, autoMessagesMax: 100 },
    action: retry,
    confidence: 0.8,
    group: { topic: "orders/pay", template: "refused", heldBy: null },
    blastRadius: { messages: 100, topics: [{ topic: "orders/pay", messages: 100 }] },
  };
  const refusals = (change: Partial<Asked>) => autoExecutionOf({ ...good, ...change }, (suggested) => suggested).refusals;

  it("REC-18: selects from 0.3 on, or from the value that is set", () => {
    expect(CONFIDENCE_GATES).toEqual({ select: 0.3, autoExecute: 0.8 });
    expect([0.29, 0.3, 1].map((each) => isSelectable(each))).toEqual([false, true, true]);
    expect(isSelectable(0.5, 0.6)).toBe(false);
    expect(isSelectable(Number.NaN)).toBe(false);
  });

  it("DR-32: runs without a person only when everything speaks for it, and is off by default", () => {
    expect(refusals({})).toEqual([]);
    const off = { ...good.settings, autoExecute: false };
    const against: [Partial<Asked>, string][] = [
      [{ settings: off }, "disabled"],
      [{ confidence: 0.79 }, "low_confidence"],
      [{ confidence: Number.NaN }, "low_confidence"],
      [{ action: { ...retry, isAutomated: false } }, "not_automated"],
      [{ action: { ...retry, approval: "one" } }, "needs_approval"],
      [{ blastRadius: { ...good.blastRadius, messages: 101 } }, "over_budget"],
      [{ group: { ...good.group, topic: "recovery/evaluate" } }, "recovery_of_recovery"],
      [{ blastRadius: { messages: 1, topics: [{ topic: "recovery/evaluate", messages: 1 }] } }, "recovery_of_recovery"],
      [{ group: { ...good.group, template: OVERFLOW } }, "overflow_group"],
      [{ group: { ...good.group, heldBy: "ada" } }, "held_group"],
      [{ action: null }, "no_action"],
    ];
    for (const [change, reason] of against) expect(refusals(change)).toEqual([reason]);
    expect(refusals({ action: { ...retry, risk: "risky" } })).toEqual(["not_safe", "needs_approval"]);
    expect(refusals({ settings: off, action: { ...retry, isAutomated: false } })).toEqual(["disabled", "not_automated"]);
  });
});

describe("bounded exploration", () => {
  const next = (): (() => number) => {
    let state = 7;
    return () => {
      state = (state * 48_271) % 2_147_483_647;
      return state / 2_147_483_647;
    };
  };

  it("R13: tries what the catalogue calls safe and automated, and nothing else", async () => {
    const documents = { revision: async () => 0, list: async () => [] } as never;
    const actions = await createCatalogue({ documents, events: { emit: () => undefined } as never }).all();
    const ranked = rankActions(
      actions.map(({ actionCode }) => ({ action: actionCode, score: 0.5 })),
      () => ({}),
      NOW,
    );
    const draw = next();
    const random = { next: draw, bytes: () => new Uint8Array() };
    const tried = (given: typeof actions) =>
      [...new Set(Array.from({ length: 300 }, () => toTry(ranked, RETRY, given, random)))].sort();
    expect(tried(actions)).toEqual(["notify_ops", RETRY]);
    for (const change of [{ approval: "one" }, { risk: "risky" }, { isAutomated: false }, { isActive: false }] as const) {
      const changed = actions.map((each) => (each.actionCode === "notify_ops" ? { ...each, ...change } : each));
      expect(tried(changed)).toEqual([RETRY]);
    }
  });

  it("leaves an action alone that has shown to be worse, and finds one that is better", () => {
    const ranked = rankActions(
      [{ action: "good", score: 0.8 }, { action: "worse" }, { action: "new" }],
      (action) => ({ own: { good: of(20, 20), worse: of(0, 60), new: of(0, 0) }[action] }),
      NOW,
    );
    const draw = next();
    const tried = Array.from({ length: 200 }, () => actionToTry(ranked, "good", () => true, draw));
    expect(tried.filter((action) => action === "worse")).toEqual([]);
    expect(tried.filter((action) => action === "new").length).toBeGreaterThan(10);
  });
});
