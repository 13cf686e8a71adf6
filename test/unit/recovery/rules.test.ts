/** Rules at work: the ten that are shipped, every kind of condition, the order, the explanation (REC-8, 9, 10, 19a). */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SHIPPED_ACTIONS } from "../../../src/recovery/actions/shipped.ts";
import { DEFAULT_RULES, SEED_RULES } from "../../../src/recovery/rules/defaults.ts";
import { evaluate, evaluateRules } from "../../../src/recovery/rules/evaluate.ts";
import type { RuleInput } from "../../../src/recovery/rules/input.ts";
import { type Condition, FROM_HISTORY, type Rule, type Rules } from "../../../src/recovery/rules/rule.ts";
import { prepareRules } from "../../../src/recovery/rules/rule-set.ts";

const DAY = 24 * 60 * 60 * 1_000;
const NOW = 1_760_000_000_000;
const SHIPPED = prepareRules(DEFAULT_RULES, SHIPPED_ACTIONS);

const rule = (id: string, condition: Condition, more: Partial<Rule> = {}): Rule => ({
  id,
  version: 1,
  name: id,
  priority: 50,
  enabled: true,
  condition,
  action: "notify_ops",
  score: 0.6,
  ...more,
});
const holds = (condition: Condition, input: Partial<RuleInput>): boolean | undefined =>
  evaluate(prepareRules([rule("r", condition)], SHIPPED_ACTIONS), { errorCode: "X", ...input }).rulesEvaluated[0]?.matched;
const own = (action: string, successes: number, failures: number, at = NOW) => ({ action, own: { successes, failures, at } });
const matchedIds = (input: RuleInput): string[] =>
  evaluate(SHIPPED, input)
    .rulesEvaluated.filter(({ matched }) => matched)
    .map((each) => each.ruleId);

describe("the shipped rules", () => {
  it("REC-10: TIMEOUT without history is retry_exponential with 0.85", () => {
    const result = evaluateRules("TIMEOUT", "Connection timed out", { skillId: "http_call", occurrenceCount: 3 });
    expect(result.recommended?.action).toBe("retry_exponential");
    expect(result.confidence).toBe(0.85);
    expect(result.rulesEvaluated).toHaveLength(DEFAULT_RULES.length);
  });

  it("EV-47: are ten, each with its action", () => {
    const cases: [RuleInput, string, string][] = [
      [{ errorCode: "TIMEOUT" }, "timeout_retry", "retry_exponential"],
      [{ errorCode: "RATE_LIMITED" }, "rate_limit_backoff", "retry_exponential"],
      [{ errorCode: "http_503" }, "server_error_fallback", "circuit_breaker"],
      [{ errorCode: "connection_refused" }, "connection_retry", "retry_exponential"],
      [{ errorCode: "BUDGET_EXCEEDED" }, "budget_fallback", "fallback_model"],
      [{ errorCode: "http_401" }, "auth_notify", "notify_ops"],
      [{ errorCode: "X", outcomes: [own("fallback_model", 4, 0)], at: NOW }, "historical_success", "fallback_model"],
      [{ errorCode: "X", occurrenceCount: 5 }, "escalate_repeated", "notify_ops"],
      [{ errorCode: "X", occurrenceCount: 10 }, "manual_review_high", "manual_intervention"],
      [{ errorCode: "X" }, "unknown_manual", "manual_intervention"],
    ];
    expect(new Set(cases.map(([, id]) => id))).toEqual(new Set(SEED_RULES.map(({ id }) => id)));
    expect(SEED_RULES).toHaveLength(10);
    for (const [input, id, action] of cases) {
      const result = evaluate(SHIPPED, input);
      expect([id, result.rulesEvaluated.find((each) => each.ruleId === id)?.contribution]).toMatchObject([
        id,
        { kind: "prior", action },
      ]);
      expect([id, result.recommended?.action]).toEqual([id, action]);
    }
  });

  it("REC-9: have the seeds' priorities, and REC-6 the catalogue its own", () => {
    const priorities = Object.fromEntries(DEFAULT_RULES.map(({ id, priority }) => [id, priority]));
    expect(priorities).toMatchObject({
      timeout_retry: 90,
      rate_limit_backoff: 85,
      server_error_fallback: 80,
      budget_fallback: 75,
      historical_success: 60,
      escalate_repeated: 40,
    });
    expect([...SHIPPED_ACTIONS]).toEqual([
      "retry_exponential",
      "fallback_model",
      "circuit_breaker",
      "notify_ops",
      "rollback_state",
      "manual_intervention",
      "skip_task",
    ]);
    for (const { action } of DEFAULT_RULES) expect(action === FROM_HISTORY || SHIPPED_ACTIONS.has(action)).toBe(true);
  });

  it("what is repeated is escalated beside the first suggestion, not instead of it", () => {
    expect(matchedIds({ errorCode: "TIMEOUT", occurrenceCount: 4 })).toEqual(["timeout_retry"]);
    expect(matchedIds({ errorCode: "TIMEOUT", occurrenceCount: 12 })).toEqual([
      "timeout_retry",
      "manual_review_high",
      "escalate_repeated",
    ]);
    const result = evaluate(SHIPPED, { errorCode: "TIMEOUT", occurrenceCount: 12 });
    expect(result.recommended?.action).toBe("retry_exponential");
    expect(result.alternatives.map(({ action }) => action)).toEqual(["manual_intervention", "notify_ops"]);
  });
});

describe("REC-8: kinds of conditions", () => {
  it("code: exact, prefix, class, no match", () => {
    expect(holds({ code: { is: ["CARD_DECLINED"] } }, { errorCode: "card-declined" })).toBe(true);
    expect(holds({ code: { prefix: ["CARD"] } }, { errorCode: "CARD_EXPIRED" })).toBe(true);
    expect(holds({ code: { class: ["HTTP_5XX"] } }, { errorCode: "http_599" })).toBe(true);
    expect(holds({ code: { is: ["CARD"], prefix: ["DECLINED"], class: ["AUTH"] } }, { errorCode: "CARDS_DECLINED" })).toBe(false);
    // DR-28 as a rule sees it.
    expect(holds({ code: { is: ["AUTH"], prefix: ["AUTH"], class: ["AUTH"] } }, { errorCode: "AUTHOR_MISSING" })).toBe(false);
    expect(holds({ code: { is: ["500"], class: ["HTTP_5XX"] } }, { errorCode: "15000" })).toBe(false);
  });

  it("pattern: on message, stack, topic, skill and code, whatever the case", () => {
    const on = (field: "message" | "stack" | "topic" | "skill" | "code", matches: string): Condition => ({
      pattern: { field, matches },
    });
    expect(holds(on("message", "no such (table|column)"), { errorMessage: "ERROR: No such column x" })).toBe(true);
    expect(holds(on("stack", "at charge "), { stackTrace: "Error\n    at charge (/app/pay.js:1:1)" })).toBe(true);
    expect(holds(on("topic", "^billing/"), { topic: "billing/charge" })).toBe(true);
    expect(holds(on("skill", "^http"), { skillId: "http_call" })).toBe(true);
    expect(holds(on("code", "^X$"), {})).toBe(true);
    expect(holds(on("message", "x"), {})).toBe(false);
    expect(holds(on("message", "late$"), { errorMessage: `${"a".repeat(5_000)} late` })).toBe(false);
  });

  it("topic and skill: a list with stars; a failure without one does not match", () => {
    expect(holds({ topic: ["audit/*", "billing/*"] }, { topic: "billing/charge" })).toBe(true);
    expect(holds({ topic: ["billing/charge"] }, { topic: "billing/refund" })).toBe(false);
    expect(holds({ skill: ["http_*"] }, { skillId: "http_call" })).toBe(true);
    expect(holds({ skill: ["*"] }, {})).toBe(false);
    // What stands before the star and what stands after it do not share a letter.
    expect(["aba", "abba", "ab-ba"].map((topic) => holds({ topic: ["ab*ba"] }, { topic }))).toEqual([false, true, true]);
  });

  it("occurrences: from the threshold on", () => {
    expect([4, 5, 6].map((occurrences) => holds({ occurrences: 5 }, { occurrenceCount: occurrences }))).toEqual([
      false,
      true,
      true,
    ]);
  });

  it("history: enough outcomes, enough of them healed, not too long ago", () => {
    const condition: Condition = { history: { minOccurrences: 3, minSuccess: 0.7 } };
    const given = (successes: number, failures: number, ageDays: number) =>
      holds(condition, { outcomes: [own("skip_task", successes, failures, NOW - ageDays * DAY)], at: NOW });
    expect(given(3, 0, 0)).toBe(true);
    expect(given(3, 0, 3)).toBe(true);
    expect(given(2, 0, 0)).toBe(false);
    expect(given(3, 2, 0)).toBe(false);
    expect(given(3, 0, 60)).toBe(false);
    expect(
      holds({ history: { action: "notify_ops", minOccurrences: 1, minSuccess: 0 } }, { outcomes: [own("skip_task", 9, 0)] }),
    ).toBe(false);
  });

  it("all, any and not", () => {
    const yes: Condition = { occurrences: 1 };
    const no: Condition = { occurrences: 1_000 };
    expect(holds({ all: [yes, yes] }, {})).toBe(true);
    expect(holds({ all: [yes, no] }, {})).toBe(false);
    expect(holds({ any: [no, yes] }, {})).toBe(true);
    expect(holds({ any: [no, no] }, {})).toBe(false);
    expect(holds({ not: no }, {})).toBe(true);
    expect(holds({ not: { all: [yes, { not: no }] } }, {})).toBe(false);
  });

  it("what stands under a not names no action that worked, and casts no doubt on the rule", () => {
    const beside = (inside: Condition): Condition => ({ any: [{ not: inside }, { occurrences: 1 }] });
    const said = (condition: Condition, input: RuleInput, action: string = "notify_ops") =>
      evaluate(prepareRules([rule("r", condition, { action })], SHIPPED_ACTIONS), input).rulesEvaluated[0]?.contribution;
    const outcomes = [own("skip_task", 1, 0), own("notify_ops", 4, 1)];
    const [often, always] = [
      { history: { minOccurrences: 3, minSuccess: 0.5 } },
      { history: { minOccurrences: 1, minSuccess: 0.9 } },
    ];
    const input = { errorCode: "X", outcomes, at: NOW };
    expect(said({ all: [beside(always), often] }, input, FROM_HISTORY)).toMatchObject({ action: "notify_ops" });
    const vague = { errorCode: "http_404", errorMessage: "lorem ipsum" };
    const { cause, certainty } = evaluate(SHIPPED, vague).cause;
    const is: Condition = { cause: { is: [cause] } };
    expect([certainty < 0.7, said(is, vague), said(beside(is), vague)]).toMatchObject([
      true,
      { score: 0.6 * certainty },
      { score: 0.6 },
    ]);
  });
});

describe("DR-29: the order", () => {
  const set = (...rules: Rules) => prepareRules(rules, SHIPPED_ACTIONS);
  const always: Condition = { occurrences: 1 };

  it("DR-29: priority comes before score, score before id", () => {
    const low = rule("low", always, { priority: 10, score: 0.99, action: "skip_task" });
    const high = rule("high", always, { priority: 90, score: 0.5, action: "notify_ops" });
    expect(evaluate(set(low, high), { errorCode: "X" })).toMatchObject({
      recommended: { action: "notify_ops" },
      confidence: 0.5,
    });
    const better = rule("z", always, { priority: 90, score: 0.6, action: "fallback_model" });
    expect(evaluate(set(low, high, better), { errorCode: "X" }).recommended?.action).toBe("fallback_model");
    const equal = rule("a", always, { priority: 90, score: 0.6, action: "circuit_breaker" });
    expect(evaluate(set(better, equal), { errorCode: "X" }).rulesEvaluated.map((each) => each.ruleId)).toEqual(["a", "z"]);
    expect(evaluate(set(better, equal), { errorCode: "X" }).recommended?.action).toBe("circuit_breaker");
  });

  it("the order in which rules, and outcomes, are given changes nothing", () => {
    const outcomes = [own("notify_ops", 2, 1), own("skip_task", 5, 5, NOW - DAY), own("notify_ops", 1, 4, NOW - 2 * DAY)];
    const input: RuleInput = { errorCode: "http_503", occurrenceCount: 12, at: NOW };
    const expected = evaluate(SHIPPED, { ...input, outcomes });
    fc.assert(
      fc.property(
        fc.shuffledSubarray([...DEFAULT_RULES], { minLength: DEFAULT_RULES.length }),
        fc.shuffledSubarray(outcomes, { minLength: 3 }),
        (rules, shuffled) => {
          const result = evaluate(prepareRules(rules, SHIPPED_ACTIONS), { ...input, outcomes: shuffled });
          expect(result.ranked.map(({ action }) => action)).toEqual(expected.ranked.map(({ action }) => action));
          expect(result.rulesEvaluated).toEqual(expected.rulesEvaluated);
          expect(result.confidence).toBeCloseTo(expected.confidence, 12);
        },
      ),
      { numRuns: 50 },
    );
  });

  it("outcomes overtake priority, and below the least confidence nothing is recommended", () => {
    const failing = evaluate(SHIPPED, {
      errorCode: "TIMEOUT",
      outcomes: [own("retry_exponential", 0, 20), own("fallback_model", 9, 1)],
      at: NOW,
    });
    expect(failing.recommended).toMatchObject({ action: "fallback_model", rules: ["historical_success"] });
    const hopeless = evaluate(SHIPPED, { errorCode: "TIMEOUT", outcomes: [own("retry_exponential", 0, 20)], at: NOW });
    // What failed so often is not the cure: one of the others may be, with little confidence.
    expect(hopeless.recommended?.action).not.toBe("retry_exponential");
    expect(hopeless.confidence).toBeLessThan(0.5);
    expect(hopeless.alternatives.at(-1)).toMatchObject({ action: "retry_exponential" });
    expect(evaluate(SHIPPED, { errorCode: "TIMEOUT" }, 0.9).recommended).toBeUndefined();
    // However low the bar is, an action that nothing speaks for is not recommended.
    expect(evaluate(set(), { errorCode: "TIMEOUT" }, 0).recommended).toBeUndefined();
  });
});

describe("the explanation", () => {
  it("says of each rule what matched with what, and what it contributed", () => {
    const tree: Condition = {
      all: [
        { code: { class: ["TIMEOUT"] } },
        { not: { topic: ["audit/*"] } },
        { pattern: { field: "message", matches: "pay\\w+" } },
      ],
    };
    const rules = [rule("mine", tree, { action: "retry_exponential" }), ...DEFAULT_RULES];
    const result = evaluate(prepareRules(rules, SHIPPED_ACTIONS), {
      errorCode: "ETIMEDOUT",
      topic: "billing/charge",
      errorMessage: "the payment\nhung",
    });
    expect(result.rulesEvaluated.find((each) => each.ruleId === "mine")).toEqual({
      ruleId: "mine",
      version: 1,
      priority: 50,
      matched: true,
      skipped: undefined,
      facts: [
        { path: "all[0].code", field: "code", wanted: "class TIMEOUT", found: "ETIMEDOUT (TIMEOUT)", matched: true },
        { path: "all[1].not.topic", field: "topic", wanted: "one of audit/*", found: "billing/charge", matched: false },
        { path: "all[2].pattern", field: "message", wanted: "matches pay\\w+", found: "payment", matched: true },
      ],
      contribution: { kind: "supports", action: "retry_exponential", score: 0.6 },
    });
    expect(result.recommended).toMatchObject({
      action: "retry_exponential",
      rules: ["cause_late", "timeout_retry", "mine"],
      prior: 0.85,
    });
    expect(result.rulesEvaluated.find((each) => each.ruleId === "auth_notify")).toMatchObject({
      matched: false,
      contribution: { kind: "none" },
    });
    expect(result.errorClasses).toEqual(["TIMEOUT"]);
  });

  it("says when the message was read because the code says nothing", () => {
    const result = evaluateRules("handler_error", "connect ECONNREFUSED 10.0.0.1:5432");
    expect(result.recommended?.action).toBe("retry_exponential");
    expect(result.rulesEvaluated.find((each) => each.ruleId === "connection_retry")?.facts[0]).toMatchObject({
      field: "message",
      matched: true,
    });
  });

  it("DR-31: outcomes of unknown actions are left out and named, and never become a suggestion", () => {
    const result = evaluate(SHIPPED, {
      errorCode: "http_404",
      outcomes: [own("restarted the pod by hand", 50, 0), own("__proto__", 50, 0)],
      at: NOW,
    });
    expect(result.recommended).toMatchObject({ action: "manual_intervention", confidence: 0.3, rules: ["cause_person"] });
    expect(result.notes).toHaveLength(2);
    expect(result.notes[0]).toContain("restarted the pod by hand");
  });

  it("DR-31: a rule whose action left the catalogue is skipped with the reason, and so is a bad pattern; the others hold", () => {
    const rules = [
      rule("gone", { occurrences: 1 }, { action: "no_longer", priority: 99 }),
      rule("bad", { pattern: { field: "message", matches: "(" } }, { priority: 98 }),
      rule("off", { occurrences: 1 }, { enabled: false, priority: 97 }),
      rule("good", { occurrences: 1 }),
    ];
    const result = evaluate(prepareRules(rules, SHIPPED_ACTIONS), { errorCode: "X" });
    expect(result.rulesEvaluated.map(({ matched, skipped }) => [matched, skipped !== undefined])).toEqual([
      [false, true],
      [false, true],
      [false, true],
      [true, false],
    ]);
    expect(result.recommended?.action).toBe("notify_ops");
  });

  it("an answer for any input, within the limits, and always the same", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), fc.nat(), (errorCode, errorMessage, topic, occurrenceCount) => {
        const input = { errorCode, errorMessage, topic, stackTrace: errorMessage, skillId: topic, occurrenceCount };
        const result = evaluate(SHIPPED, input);
        expect(result.confidence >= 0 && result.confidence <= 1).toBe(true);
        expect(evaluate(SHIPPED, input)).toEqual(result);
      }),
    );
    const mebibyte = "x\u0000timeout ".repeat(104_858);
    expect(
      evaluate(SHIPPED, { errorCode: mebibyte, errorMessage: mebibyte, stackTrace: mebibyte, topic: mebibyte }).rulesEvaluated,
    ).toHaveLength(DEFAULT_RULES.length);
  });
});

describe("a set", () => {
  it("takes a rule of one's own, and no id twice", () => {
    const mine = rule("mine", { occurrences: 1 }, { priority: 99, action: "skip_task" });
    const set = prepareRules([...DEFAULT_RULES, mine], SHIPPED_ACTIONS);
    expect(evaluate(set, { errorCode: "TIMEOUT" }).recommended?.action).toBe("skip_task");
    expect(() => prepareRules([mine, mine], SHIPPED_ACTIONS)).toThrow(/two rules with the id/);
  });
});
