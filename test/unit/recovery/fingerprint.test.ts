/** Fingerprints: what makes two failures one, the id that follows from it, rules made by hand, and the explanation. */
import { describe, expect, it } from "vitest";
import { differences } from "../../../src/recovery/fingerprint/differences.ts";
import { type Failure, FINGERPRINT_LIMITS, Fingerprints, failureMatchId } from "../../../src/recovery/fingerprint/fingerprint.ts";
import { checkedRule, type GroupRule, RULE_LIMITS, RuleTable } from "../../../src/recovery/fingerprint/group-rules.ts";
import { FINGERPRINT_VERSION } from "../../../src/recovery/fingerprint/learner.ts";
import type { Group } from "../../../src/recovery/groups/group.ts";
import { mergeDecision } from "../../../src/recovery/groups/merge.ts";
import { sample } from "./fingerprint-fixtures.ts";
import { createMemoryTemplateStore } from "./memory-template-store.ts";

const failure = (text: string, more: Partial<Failure> = {}): Failure => ({
  topic: "billing/charge",
  sink: "http",
  errorCode: "TIMEOUT",
  errorMessage: text,
  ...more,
});

const mergeRule = (id: string, topic: string, errorCode: string, templates: readonly string[], reason: string): GroupRule =>
  checkedRule({ id, kind: "merge", topic, errorCode, templates, reason });

const splitRule = (id: string, topic: string, errorCode: string, template: string, words: readonly string[], reason: string) =>
  checkedRule({ id, kind: "split", topic, errorCode, templates: [template], words, reason });

describe("the key", () => {
  it("holds topic, sink, code, template and top frame, and the version", () => {
    const fingerprints = new Fingerprints();
    const base = fingerprints.of(failure("charge 5 failed"));
    expect(base.key).toMatch(new RegExp(`^f${FINGERPRINT_VERSION}\\.[0-9a-f]{16}\\.[0-9a-f]{12}$`));
    expect(fingerprints.of(failure("charge 6 failed"))).toEqual(base);
    const stack = "Error: x\n    at charge (/app/pay.js:10:5)";
    const others = [
      failure("charge 5 failed", { topic: "billing/refund" }),
      failure("charge 5 failed", { sink: "webhook" }),
      failure("charge 5 failed", { errorCode: "REFUSED" }),
      failure("charge 5 failed", { stackTrace: stack }),
      failure("refund 5 failed"),
    ].map((one) => fingerprints.of(one).key);
    expect(new Set([base.key, ...others]).size).toBe(6);
    expect(fingerprints.of(failure("charge 5 failed", { stackTrace: stack.replace(":10:5", ":11:9") })).key).toBe(others[3]);
    expect(fingerprints.of(failure("charge 5 failed", { stackTrace: stack.replace("pay", "till") })).key).not.toBe(others[3]);
  });

  it("is the same in every process, and so is its failure_match_id, a UUID of version 5", () => {
    const [one, other] = [new Fingerprints(), new Fingerprints()].map((each) => each.of(failure("charge 5 failed")));
    expect(one).toEqual(other);
    expect(one?.failureMatchId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    // A change of this id would part every group from its history.
    expect(failureMatchId("f1.0123456789abcdef.0123456789ab")).toBe("cf3994ef-88e3-566d-881f-a3515e9d524a");
  });

  it("a trace inside the text is not part of the message", () => {
    const fingerprints = new Fingerprints();
    const text = "Error: no amount 5\n    at charge (/app/pay.js:10:5)\n    at main (/app/main.js:1:1)";
    expect(fingerprints.of(failure(text))).toMatchObject({ template: "Error no amount <*>", topFrame: "charge pay.js" });
  });

  it("takes texts of 1 MiB, and another failure's id in a text is only an id", () => {
    const fingerprints = new Fingerprints();
    const first = fingerprints.of(failure("charge failed"));
    const mention = (id: string) => fingerprints.of(failure(`replay of failure ${id} failed as well`));
    expect(mention(first.failureMatchId).key).toBe(mention("550e8400-e29b-41d4-a716-446655440000").key);
    expect(mention(first.failureMatchId).key).not.toBe(first.key);
    const huge = `${"a ".repeat(FINGERPRINT_LIMITS.textCharsMax)}${"\n    at x (y.js:1:1)".repeat(50_000)}`;
    expect(fingerprints.of(failure(huge)).topFrame).toBe("x y.js");
  });

  it("five thousand failures of seventeen kinds are seventeen groups", () => {
    const fingerprints = new Fingerprints();
    const keys = sample(300).map(({ text }) => fingerprints.of(failure(text)).key);
    expect(new Set(keys.map((key) => fingerprints.resolve("billing/charge", "TIMEOUT", key))).size).toBe(17);
  });

  it("ids that happen to have no digit are still ids", () => {
    const fingerprints = new Fingerprints();
    const letters = (n: number, base: number): string => ((n * 48_271) % 2_147_483_647).toString(base).padStart(6, "k").slice(-6);
    const kinds: ((n: number) => string)[] = [
      (n) => `request ${letters(n, 36)} failed`,
      (n) => `token ${letters(n, 36)}`,
      (n) => `charge ch_${letters(n, 36)} was declined by the bank`,
      (n) => `object ${letters(n, 16)} is gone`,
    ];
    const keys = Array.from(
      { length: 4_000 },
      (_, n) => fingerprints.of(failure((kinds[n % 4] as (n: number) => string)(n + 1))).key,
    );
    expect(new Set(keys.map((key) => fingerprints.resolve("billing/charge", "TIMEOUT", key))).size).toBe(4);
  });

  it("a key of another version, or none at all, stands for itself", () => {
    for (const key of ["f0.0123456789abcdef.0123456789ab", "", "what", "f1", "f1..", "550e8400-e29b-41d4-a716-446655440000"]) {
      expect(new Fingerprints().resolve("t", "c", key)).toBe(key);
    }
  });

  it("past the limit of scopes the mask alone groups", () => {
    const fingerprints = new Fingerprints({ scopesMax: 1 });
    fingerprints.of(failure("one"));
    const [a, b, c] = ["no user ann here", "no user bo here", "no user ann here"].map(
      (text) => fingerprints.of(failure(text, { errorCode: "X" })).key,
    );
    expect(a).toBe(c);
    expect(a).not.toBe(b);
    expect(fingerprints.learner("billing/charge", "X")).toBeUndefined();
  });
});

describe("processes", () => {
  it("agree through the store, also one that comes later", async () => {
    const store = createMemoryTemplateStore();
    const [one, other, late] = [new Fingerprints(), new Fingerprints(), new Fingerprints()];
    const early = one.of(failure("mailbox handed to user ann")).key;
    const theirs = other.of(failure("mailbox handed to user bo")).key;
    await one.open(store, "billing/charge", "TIMEOUT");
    await other.open(store, "billing/charge", "TIMEOUT");
    await one.open(store, "billing/charge", "TIMEOUT");
    await late.open(store, "billing/charge", "TIMEOUT");
    const now = [one, other, late].map((each) => each.of(failure("mailbox handed to user cy")).key);
    expect(new Set(now).size).toBe(1);
    for (const each of [one, other, late]) {
      expect(each.resolve("billing/charge", "TIMEOUT", early)).toBe(now[0]);
      expect(each.resolve("billing/charge", "TIMEOUT", theirs)).toBe(now[0]);
    }
  });

  it("keep what they learn while the store saves", async () => {
    const store = createMemoryTemplateStore();
    const fingerprints = new Fingerprints();
    fingerprints.of(failure("mailbox handed to user ann"));
    const save: typeof store.save = (...given) => {
      fingerprints.of(failure("queue drained by user bo"));
      return store.save(...given);
    };
    await fingerprints.open({ ...store, save }, "billing/charge", "TIMEOUT");
    expect(fingerprints.learner("billing/charge", "TIMEOUT")?.snapshot().rows).toHaveLength(2);
  });
});

describe("rules made by hand", () => {
  const merged = mergeRule(
    "r1",
    "billing/charge",
    "TIMEOUT",
    ["card declined by bank", "card refused by bank <*>"],
    "the bank words it twice",
  );

  it("a merge holds for the future, and ids given out before lead to it", () => {
    const fingerprints = new Fingerprints();
    const before = ["card declined by bank", "card refused by bank 5", "card lost"].map(
      (text) => fingerprints.of(failure(text)).key,
    );
    fingerprints.useRules([merged]);
    const one = fingerprints.of(failure("card declined by bank"));
    expect(fingerprints.of(failure("card refused by bank 9"))).toEqual(one);
    expect(one.groupRule).toBe("r1");
    const after = before.map((key) => fingerprints.resolve("billing/charge", "TIMEOUT", key));
    expect(after).toEqual([one.key, one.key, before[2]]);
    expect(fingerprints.of(failure("card declined by bank", { errorCode: "OTHER" })).groupRule).toBeUndefined();
  });

  it("DR-28: a split looks for whole words, so 500 is not found in 15000, and it can name what the mask hides", () => {
    const split = splitRule(
      "r2",
      "billing/charge",
      "TIMEOUT",
      "gateway answered <*>",
      ["500"],
      "500 is theirs, the rest is ours",
    );
    const fingerprints = new Fingerprints({ rules: [split] });
    const of = (text: string) => fingerprints.of(failure(text));
    expect(of("gateway answered 500").groupRule).toBe("r2");
    expect(of("gateway answered 15000").groupRule).toBeUndefined();
    expect(of("gateway answered 15000").key).toBe(of("gateway answered 404").key);
    expect(of("gateway answered 500").key).not.toBe(of("gateway answered 404").key);
  });

  it("R10: a rule's phrase stands in the text on its own, whatever it is made of", () => {
    const text = "10.0.0.7:80 db-eu-west (5) node is read  only";
    const { template } = new Fingerprints().of(failure(text));
    const takes = (phrase: string): boolean => {
      const rules = [splitRule("r", "billing/charge", "TIMEOUT", template, [phrase], "")];
      return new Fingerprints({ rules }).of(failure(text)).groupRule === "r";
    };
    for (const phrase of ["read only", "10.0.0.7", "10.0.0.7:80", "db-eu-west", "(5)", "node is read"]) {
      expect(takes(phrase)).toBe(true);
    }
    for (const phrase of ["read on", "0.0.7:8", "10.0.0.70", "b-eu", "only read"]) {
      expect(takes(phrase)).toBe(false);
    }
  });

  it("the key of a rule does not depend on how fingerprints are made", () => {
    const fingerprints = new Fingerprints({ rules: [merged] });
    const { key } = fingerprints.of(failure("card declined by bank"));
    expect(key).toMatch(/^f1\./);
    expect(fingerprints.resolve("billing/charge", "TIMEOUT", key)).toBe(key);
  });

  it("the more particular rule wins, whatever the order of the list", () => {
    const wide = mergeRule("a", "t", "c", ["x <*> <*>", "y <*> <*>"], "");
    const narrow = mergeRule("b", "t", "c", ["x y <*>", "x z <*>"], "");
    for (const rules of [
      [wide, narrow],
      [narrow, wide],
    ]) {
      expect(new RuleTable(rules).find("t", "c", "x y q", "x y q")?.id).toBe("b");
      expect(new RuleTable(rules).find("t", "c", "x w q", "x w q")?.id).toBe("a");
    }
  });

  it("refuses rules that cannot work", () => {
    expect(mergeDecision({ rules: [], byId: new Map() }, {} as Group, [], ["one"], "", () => "new")).toBeNull();
    const many = Array.from({ length: RULE_LIMITS.templatesMax + 1 }, (_, i) => `${i}`);
    expect(() => mergeRule("r", "t", "c", many, "")).toThrow(/at most 500 templates/);
    expect(() => splitRule("r", "t", "c", "x", many, "")).toThrow(/at most 20 words/);
    expect(() => splitRule("r", "t", "c", " ", [], "")).toThrow(/empty template/);
    expect(() => splitRule("", "t", "c", "x", [], "")).toThrow(/give it one/);
    expect(() => new RuleTable(Array.from({ length: 1_001 }, () => merged))).toThrow(/at most 1000 rules/);
  });
});

describe("why", () => {
  it("says what is the same, what varies with examples, and which merge it was", () => {
    const fingerprints = new Fingerprints();
    const [a, b] = [failure("session 5 closed for user ann"), failure("session 77 closed for user bo")];
    const first = fingerprints.of(a).key;
    expect(differences(fingerprints, a, b)).toEqual({
      hidden: [{ placeholder: "<num>", values: ["5", "77"] }],
      variables: [{ values: ["ann", "bo"], seen: ["ann", "bo"] }],
    });
    const now = fingerprints.of(a);
    expect(now).toEqual(fingerprints.of(b));
    expect(now.template).toBe("session <*> closed for user <*>");
    expect(now.key).not.toBe(first);
    const merges = fingerprints.merges(a.topic, a.errorCode, now.key);
    expect(merges.map(({ from }) => from)).toContain(first.split(".")[1]);
    expect(merges.map(({ why }) => why)).toContain(`"session <*> closed for user ann" became "${now.template}"`);
  });

  it("says what parts two failures", () => {
    const fingerprints = new Fingerprints();
    const [a, b] = [failure("worker started"), failure("worker stopped", { sink: "webhook" })];
    expect(differences(fingerprints, a, b)).toEqual({ hidden: [], variables: [{ values: ["started", "stopped"], seen: [] }] });
    const [one, other] = [fingerprints.of(a), fingerprints.of(b)];
    expect([one.template, other.template]).toEqual(["worker started", "worker stopped"]);
    expect(one.key).not.toBe(other.key);
    expect(fingerprints.merges(a.topic, a.errorCode, one.key)).toEqual([]);
  });

  it("says what is hidden as far as both hide the same", () => {
    const [a, b] = [failure("job 5 took 7 s on 10.0.0.1"), failure("job 6 took 80 ms on 10.0.0.2")];
    expect(differences(new Fingerprints(), a, b).hidden).toEqual([{ placeholder: "<num>", values: ["5", "6"] }]);
  });
});
