/**
 * The scanner accepts exactly the texts that JSON.parse accepts, cuts values out unchanged, and no depth can break it.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isMakegoodError } from "../../../src/message/errors.ts";
import { checkJson, cursorOn, eachMember, takeValue } from "../../../src/message/json-scanner.ts";
import { readPosted } from "../../../src/server/posted.ts";

function accepts(text: string): boolean {
  try {
    checkJson(text, "invalid_payload");
    return true;
  } catch (error) {
    expect(isMakegoodError(error)).toBe(true);
    return false;
  }
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe("the JSON grammar", () => {
  it.each([
    "{}",
    "[]",
    "0",
    "-0",
    "1e400",
    "-1.5E+10",
    "18446744073709551616",
    '"\\ud800"',
    '"\\u0000"',
    '{"a":1,"a":2}',
    " [ 1 , 2 ] ",
    '{"__proto__":{"x":1}}',
    "true",
    "null",
    '"\u2028"',
    "01",
    "1.",
    ".5",
    "+1",
    "-",
    "1e",
    "NaN",
    "tru",
    "[1,]",
    "[,1]",
    "{,}",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    "{a:1}",
    "'a'",
    '"\u0000"',
    '"\n"',
    '"\\x"',
    '"\\u12"',
    '"',
    "",
    " ",
    "[",
    "]",
    "{",
    "[1 2]",
    "1 2",
    "\ufeff{}",
    "[}",
    "{]",
    '{"a":1]',
    "nul",
    "--1",
    "0x1",
    "1_0",
    "/**/1",
    "\u00a01",
  ])("judges %j as JSON.parse does", (text) => {
    expect(accepts(text)).toBe(parses(text));
  });

  it("agrees with JSON.parse on long strings of plain characters and escapes, whole and damaged in one place", () => {
    const part = fc.constantFrom("a", "é", "\\n", '\\"', "\\\\", "\\u0001", "\\uD83D", "x".repeat(70), "\\t".repeat(70));
    const harm = fc.constantFrom("", '"', "\\", "\\x", "\\u12", "\n", "\u0000");
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), fc.nat(), harm, (parts, at, char) => {
        const text = `["${parts.join("")}"]`;
        const i = at % (text.length + 1);
        const broken = text.slice(0, i) + char + text.slice(i + 1);
        return accepts(text) && accepts(broken) === parses(broken);
      }),
      { numRuns: 1_500 },
    );
  });

  it("agrees with JSON.parse on whatever fast-check makes of JSON", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 10 }), (text) => accepts(text)),
      { numRuns: 500 },
    );
  });

  it("agrees with JSON.parse on JSON that was damaged in one place", () => {
    const damaged = fc.tuple(fc.json(), fc.nat(), fc.constantFrom("", ",", '"', "\\", "{", "]", "0", ".", "e", "\u0001", "-"));
    fc.assert(
      fc.property(damaged, ([text, at, char]) => {
        const i = at % (text.length + 1);
        const broken = text.slice(0, i) + char + text.slice(i + 1);
        return accepts(broken) === parses(broken);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("cutting out", () => {
  it("returns each value's exact text without the whitespace around it", () => {
    const found = new Map<string, string>();
    const cursor = cursorOn('{ "p\\u0061yload" :\n\t{ "a" : 1e400 ,"a":2}  , "n":  18446744073709551616 }', "invalid_message");
    expect(eachMember(cursor, (key) => found.set(key, takeValue(cursor)))).toBe(true);
    expect([...found]).toEqual([
      ["payload", '{ "a" : 1e400 ,"a":2}'],
      ["n", "18446744073709551616"],
    ]);
  });

  it("keeps any payload as it was written, alone and in a batch", () => {
    fc.assert(
      fc.property(fc.json(), (payload) => {
        const body = readPosted(`{"topic":"a/b","payload":${payload}}`, 1_000_000);
        const batch = readPosted(`{"messages":[{"payload":${payload} ,"topic":"a/b"}]}`, 1_000_000);
        expect(!Array.isArray(body) && body.message?.payloadText).toBe(payload.trim());
        expect(Array.isArray(batch) && batch.map(({ message }) => message?.payloadText)).toEqual([payload.trim()]);
      }),
    );
  });
});

describe("depth", () => {
  const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);

  it("takes 200 levels and refuses 201", () => {
    expect(accepts(nested(200))).toBe(true);
    expect(accepts(nested(201))).toBe(false);
  });

  it("refuses 200,000 levels without recursion, closed or not", () => {
    expect(accepts(nested(200_000))).toBe(false);
    expect(accepts('{"a":'.repeat(200_000))).toBe(false);
  });

  it("reads a number as long as the body", () => {
    expect(accepts("9".repeat(4_000_000))).toBe(true);
  });
});
