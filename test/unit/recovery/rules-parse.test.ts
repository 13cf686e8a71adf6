/** Rules from outside: every mistake at once with its path, limits, hostile patterns, and the way back to JSON. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SHIPPED_ACTIONS } from "../../../src/recovery/actions/shipped.ts";
import { DEFAULT_RULES } from "../../../src/recovery/rules/defaults.ts";
import { evaluate } from "../../../src/recovery/rules/evaluate.ts";
import { fitsGlob } from "../../../src/recovery/rules/glob.ts";
import { ruleReader, ruleToJson } from "../../../src/recovery/rules/parse-rule.ts";
import { compilePattern } from "../../../src/recovery/rules/pattern.ts";
import { RULE_LIMITS } from "../../../src/recovery/rules/rule.ts";
import { prepareRules } from "../../../src/recovery/rules/rule-set.ts";

const base = { id: "mine", name: "Mine", priority: 50, action: "retry_exponential", score: 0.5 };
const parseRule = ruleReader(SHIPPED_ACTIONS);
const withCondition = (condition: unknown) => parseRule({ ...base, condition });
const pathsOf = (parsed: ReturnType<typeof parseRule>): string[] => (parsed.ok ? [] : parsed.mistakes.map(({ field }) => field));
const pattern = (matches: string, field = "message") => ({ pattern: { field, matches } });

describe("mistakes", () => {
  it("are named all at once, each with its path", () => {
    const parsed = parseRule({
      id: "Not An Id",
      name: "",
      priority: 1.5,
      score: 2,
      enabled: "yes",
      action: "drop_database",
      extra: 1,
      condition: {
        all: [
          { code: { is: [], class: ["HTTP_9XX"], like: "x" } },
          { occurrences: 0 },
          { history: { action: "no_such", min_occurrences: 3, min_success: 7 } },
          { pattern: { field: "payload", matches: "(" } },
          { topic: "billing/*" },
          {},
          { code: { is: ["A"] }, occurrences: 3 },
          7,
        ],
      },
    });
    expect(new Set(pathsOf(parsed))).toEqual(
      new Set([
        "",
        "id",
        "name",
        "priority",
        "score",
        "enabled",
        "action",
        "condition.all[0].code",
        "condition.all[0].code.is",
        "condition.all[0].code.class[0]",
        "condition.all[1].occurrences",
        "condition.all[2].history.action",
        "condition.all[2].history.min_success",
        "condition.all[3].pattern.field",
        "condition.all[3].pattern.matches",
        "condition.all[4].topic",
        "condition.all[5]",
        "condition.all[6]",
        "condition.all[7]",
      ]),
    );
  });

  it("DR-31: an action that the catalogue does not know is refused, as the action and in a history", () => {
    expect(pathsOf(parseRule({ ...base, action: "rm -rf", condition: { occurrences: 1 } }))).toEqual(["action"]);
    const history = { history: { action: "worked fine", min_occurrences: 1, min_success: 0.5 } };
    expect(pathsOf(withCondition(history))).toEqual(["condition.history.action"]);
    expect(ruleReader(new Set(["my_own"]))({ ...base, action: "my_own", condition: { occurrences: 1 } }).ok).toBe(true);
  });

  it("from_history needs a history condition that must hold and names no action", () => {
    const history = { history: { min_occurrences: 3, min_success: 0.7 } };
    const paths = (condition: unknown) => pathsOf(parseRule({ ...base, action: "from_history", condition }));
    expect(paths(history)).toEqual([]);
    expect(paths({ all: [{ occurrences: 3 }, history] })).toEqual([]);
    expect(paths({ any: [{ occurrences: 3 }, history] })).toEqual(["action"]);
    expect(paths({ not: history })).toEqual(["action"]);
    expect(paths({ history: { action: "notify_ops", min_occurrences: 3, min_success: 0.7 } })).toEqual(["action"]);
  });
});

describe("the hostile zoo", () => {
  it("attack 22: __proto__, constructor and prototype are unknown members and change nothing", () => {
    for (const name of ["__proto__", "constructor", "prototype"]) {
      const text = `{"id":"x","name":"x","priority":1,"action":"notify_ops","score":0.5,"${name}":{"enabled":false,"polluted":1},"condition":{"${name}":{"occurrences":1},"occurrences":1}}`;
      expect(pathsOf(parseRule(JSON.parse(text)))).toEqual(["", "condition"]);
    }
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(pathsOf(parseRule({ ...base, action: "constructor", condition: { occurrences: 1 } }))).toEqual(["action"]);
  });

  it("trees that are too deep, too wide, too many, or circular are refused without being walked", () => {
    let deep: unknown = { occurrences: 1 };
    for (let i = 0; i < 100_000; i++) deep = { not: deep };
    expect(withCondition(deep).ok).toBe(false);
    const wide = { all: Array.from({ length: 100_000 }, () => ({ occurrences: 1 })) };
    expect(pathsOf(withCondition(wide))).toEqual(["condition.all"]);
    const row = Array.from({ length: 60 }, () => ({ occurrences: 1 }));
    const bush = { all: row.map(() => ({ any: row.map(() => ({ all: row })) })) };
    expect(withCondition(bush).ok).toBe(false);
    const circle: { all: unknown[] } = { all: [] };
    circle.all.push(circle, circle);
    expect(withCondition(circle).ok).toBe(false);
  });

  it("texts that are too long, empty or full of control characters are refused", () => {
    expect(pathsOf(withCondition({ topic: ["x".repeat(RULE_LIMITS.textCharsMax + 1)] }))).toEqual(["condition.topic[0]"]);
    expect(pathsOf(withCondition({ topic: ["a\u001b[2J"] }))).toEqual(["condition.topic[0]"]);
    expect(pathsOf(withCondition({ code: { is: ["***"] } }))).toEqual(["condition.code.is[0]"]);
    expect(pathsOf(withCondition({ skill: Array(RULE_LIMITS.valuesMax + 1).fill("a") }))).toEqual(["condition.skill"]);
    expect(pathsOf(withCondition({ occurrences: Number.NaN }))).toEqual(["condition.occurrences"]);
    expect(pathsOf(withCondition(null))).toEqual(["condition"]);
  });

  it("a list of a thousand mistakes is cut", () => {
    const members = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`m${i}`, i]));
    const parsed = parseRule(members);
    expect(parsed.ok ? 0 : parsed.mistakes.length).toBe(RULE_LIMITS.errorsMax);
  });

  it("attack 24: patterns that would run for ever elsewhere are linear here, or refused", () => {
    const evil = ["^(a+)+$", "(a|aa)+$", "(a|a?)+$", "(.*a){12}$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(x+x+)+y", "(?i)(a*)*b"];
    const text = `${"a".repeat(100_000)}!`;
    for (const source of evil) {
      const parsed = withCondition(pattern(source));
      expect([source, parsed.ok]).toEqual([source, true]);
      if (!parsed.ok) continue;
      // It comes back at all: a backtracking engine would not, within the life of this test.
      const { rulesEvaluated } = evaluate(prepareRules([parsed.value], SHIPPED_ACTIONS), { errorCode: "X", errorMessage: text });
      expect(rulesEvaluated[0]?.facts).toHaveLength(1);
    }
  });

  it("patterns that compile to large programs, or that RE2 does not know, are refused", () => {
    for (const source of [
      "a{1000}",
      "(a{50}){50}",
      "((a{10}){10}){10}",
      "(?:(?:(?:x{64}){64}){64}){64}",
      "[a-z]{64}[a-z]{64}[a-z]{64}[a-z]{64}",
      "a{99999999999999}",
      "a{2}".repeat(9),
      "(a)\\1",
      "(?=a)b",
      "(?<!a)b",
      "\\pL+",
      "(",
      "[",
      "*",
      "a".repeat(RULE_LIMITS.patternCharsMax + 1),
      `${"(".repeat(120)}a${")".repeat(120)}{64}`,
    ]) {
      expect([source, compilePattern(source).ok && source]).toEqual([source, false]);
    }
    const patterns = Array.from({ length: RULE_LIMITS.patternsMax + 1 }, () => pattern("a"));
    expect(withCondition({ any: patterns }).ok).toBe(false);
  });

  it("attack 25: a template is only a text", () => {
    const parsed = parseRule({ ...base, name: "{{constructor.constructor('return 1')()}}", condition: { occurrences: 1 } });
    expect(parsed.ok && parsed.value.name).toBe("{{constructor.constructor('return 1')()}}");
  });

  it("a set whose patterns are too large together is refused as a whole", () => {
    const rules = Array.from({ length: 40 }, (_, i) => ({
      ...DEFAULT_RULES[0]!,
      id: `r${i}`,
      condition: { pattern: { field: "message" as const, matches: "[a-f]{60}x" } },
    }));
    expect(() => prepareRules(rules, SHIPPED_ACTIONS)).toThrow(/steps together/);
  });

  it("any JSON at all is either a rule or a list of mistakes", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.jsonValue({ maxDepth: 5 }), (rule, condition) => {
        for (const parsed of [parseRule(rule), withCondition(condition)]) {
          expect(parsed.ok || parsed.mistakes.length > 0).toBe(true);
        }
      }),
    );
  });
});

describe("the way back", () => {
  it("what is written is what is read", () => {
    for (const rule of DEFAULT_RULES) {
      expect(parseRule(JSON.parse(JSON.stringify(ruleToJson(rule))))).toEqual({ ok: true, value: rule });
    }
    const leaf = fc.oneof(
      fc.record({ occurrences: fc.integer({ min: 1, max: 1_000 }) }),
      fc.record({ code: fc.record({ is: fc.constant(["A"]), prefix: fc.constant(["B"]) }) }),
      fc.record({ history: fc.record({ minOccurrences: fc.integer({ min: 1, max: 9 }), minSuccess: fc.constant(0.5) }) }),
      fc.constant({ pattern: { field: "stack" as const, matches: "at .*pay" } }),
      fc.record({ topic: fc.constant(["billing/*"]) }),
    );
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 3 },
        leaf,
        fc.record({ not: tie("tree") }),
        fc.record({ all: fc.array(tie("tree"), { minLength: 1, maxLength: 2 }) }),
        fc.record({ any: fc.array(tie("tree"), { minLength: 1, maxLength: 2 }) }),
      ),
    }));
    fc.assert(
      fc.property(tree, (condition) => {
        const rule = { ...DEFAULT_RULES[0]!, condition: condition as never };
        const again = parseRule(JSON.parse(JSON.stringify(ruleToJson(rule))));
        // More than four patterns in one tree are refused, and rightly so.
        if (again.ok) expect(again.value).toEqual(rule);
        else expect(again.mistakes.every(({ detail }) => detail.includes("patterns"))).toBe(true);
      }),
    );
  });
});

describe("globs", () => {
  it("stars stand for anything, everything else for itself", () => {
    for (const [glob, text, fits] of [
      ["billing/*", "billing/charge", true],
      ["billing/*", "billing2/charge", false],
      ["*/charge", "billing/charge", true],
      ["*", "", true],
      ["a*b*c", "aXbYbZc", true],
      ["a*b", "ac", false],
      ["a.c", "abc", false],
      ["[a]", "a", false],
      ["a", "A", false],
      ["", "", true],
      ["", "a", false],
    ] as const) {
      expect([glob, text, fitsGlob(glob, text)]).toEqual([glob, text, fits]);
    }
    expect(fitsGlob(`${"*a".repeat(90)}b`, "a".repeat(512))).toBe(false);
  });
});
