/**
 * Amounts of conservation: read as they are written, and added exactly.
 */
import { describe, expect, it } from "vitest";
import { moneyOf } from "../../../src/store/shared/money.ts";
import { addedAmounts, difference, headOf } from "../../../src/store/shared/sums.ts";

describe("the amount of a payload", () => {
  it("is its text, at any depth, of the last member of that name", () => {
    expect(moneyOf('{"a":{"b":9007199254740993.10}}', "a.b")).toBe("9007199254740993.10");
    expect(moneyOf('{"amount":1,"other":[{"amount":3}],"amount":2}', "amount")).toBe("2");
    expect(moneyOf('{"amount":"12.5"}', "amount")).toBe("12.5");
    expect(moneyOf('{"am\\u006funt":-1e2}', "amount")).toBe("-1e2");
  });

  it("is none where there is no number", () => {
    for (const payload of [
      '{"amount":null}',
      '{"amount":"1 euro"}',
      "[1]",
      "7",
      "no json",
      '{"amount":{"b":1}}',
      `{"amount":${"9".repeat(41)}}`,
    ])
      expect(moneyOf(payload, "amount"), payload).toBe("");
  });
});

describe("amounts", () => {
  it("are added exactly, whatever places and signs they have", () => {
    expect(addedAmounts("0.1", "0.2")).toBe("0.3");
    expect(addedAmounts("9007199254740993", "0.000000000000000001")).toBe("9007199254740993.000000000000000001");
    expect(addedAmounts("1e2", "-0.50", "", "no amount")).toBe("99.5");
    expect(addedAmounts("-1", "0.25")).toBe("-0.75");
    expect(addedAmounts("-5", "5.00")).toBe("0");
    expect(addedAmounts("1.5e-3")).toBe("0.0015");
  });
});

describe("an account", () => {
  const same = { accepted: 3n, here: 2n, gone: 1n, sameIds: true, samePayloads: true, money: null };
  it("differs by what it lacks first: messages, ids, money, payloads", () => {
    expect(difference(same)).toBeNull();
    expect(difference({ ...same, here: 1n, sameIds: false })?.kind).toBe("message_gone");
    expect(difference({ ...same, here: 3n })?.kind).toBe("more_than_accepted");
    expect(difference({ ...same, sameIds: false, samePayloads: false })?.kind).toBe("ids_swapped");
    expect(difference({ ...same, samePayloads: false, money: { accepted: "1.50", now: "1.5" } })?.kind).toBe("payload_changed");
    expect(difference({ ...same, money: { accepted: "1", now: "2" } })?.kind).toBe("money_changed");
  });

  it("has another seal for another word, and for another seal before", () => {
    expect(new Set([headOf("", ["a", "b"]), headOf("", ["ab"]), headOf("x", ["a", "b"])]).size).toBe(3);
  });
});
