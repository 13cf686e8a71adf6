/** The mask: typed placeholders, itself again when repeated, no digit left, hostile texts in one pass. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hiddenIn, mask } from "../../../src/recovery/fingerprint/mask.ts";
import { sample } from "./fingerprint-fixtures.ts";

const CASES: readonly (readonly [string, string])[] = [
  ["took 12.5 ms, 3 s left, 40 seconds", "took <duration>, <num> s left, <duration>"],
  ["id=550e8400-e29b-41d4-a716-446655440000", "id=<uuid>"],
  ["0xDEADbeef and a489c868f0c37da93b76", "<hex> and <hex>"],
  ["10.0.0.1:8080 via /10.1.2.3:99 and ::ffff:10.0.0.1 and fe80::1", "<ip> via /<ip> and <ip> and <ip>"],
  ["host db-1.eu.example.com:5432 is away", "host <host> is away"],
  ["at main.go:42", "at main.go:<num>"],
  ["see https://a.b/c?d=1&e=2, then", "see <url>, then"],
  ["open /etc/app.conf and C:\\Temp\\a b", "open <path> and <path> b"],
  ['"GET /v2/x?q=1 HTTP/1.1" status: 200', '"GET <path> HTTP/<num>" status: <num>'],
  ["mail bob.smith@example.com now", "mail <email> now"],
  ['relation "orders" can\'t be read', "relation <str> can't be read"],
  ['title="a b c" {"error":"rate_limited"}', 'title=<str> {"error":"rate_limited"}'],
  ["at Fri Jun 17 07:07:00 2005 and 17 Jun 2005 and 2005-06-17T07:07:00.1Z", "at <time> and <time> and <time>"],
  ["eth0 blk_-12 node-12 rack_B7 attempt_12_m_3", "eth<num> blk_<num> node-<num> rack_<num> attempt_<id>"],
  ["16K 64172MB 99% -5 1e9 v1.2.3", "<size> <size> <num> <num> <num> <version>"],
  ["ready=true, ws=null but returned true", "ready=<bool>, ws=<bool> but returned true"],
  ["  tab\tand\u0000control\r\nspace  ", "tab and control space"],
  ["I/O on n/a, application/json", "I/O on n/a, application/json"],
  ["object fadeec of DEADBEEF after a decade of Facade", "object <hex> of <hex> after a decade of Facade"],
  ["localhost:8080 and localhost and aa:bb:cc:dd:ee:ff", "<host> and <host> and <ip>"],
  ["", ""],
];

describe("mask", () => {
  it.each(CASES)("%j", (text, masked) => {
    expect(mask(text)).toBe(masked);
  });

  it("a mask of a mask is itself, and no digit is left", () => {
    const fragment = fc.oneof(
      fc.string(),
      fc.string({ unit: "binary" }),
      fc.ipV4(),
      fc.ipV6(),
      fc.uuid(),
      fc.webUrl(),
      fc.emailAddress(),
      fc.double().map(String),
      fc.constantFrom(
        "<num>",
        "<id>",
        "<",
        ">",
        "'",
        '"',
        "=",
        "://",
        " ",
        "\n",
        "12 ms",
        "a/b/c",
        "C:\\x\\y",
        "Jun 5",
        "x_1",
        "0x",
        "true",
        ":",
      ),
    );
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 12 }), (parts) => {
        const once = mask(parts.join(""));
        expect(mask(once)).toBe(once);
        expect(once).not.toMatch(/[0-9]/);
      }),
      { numRuns: 2_000, seed: 5 },
    );
  });

  it("our own error texts stay as they are when masked again", () => {
    for (const { text } of sample(20)) expect(mask(mask(text))).toBe(mask(text));
  });

  // What a word becomes depends on at most its quotation and the word before and after it: the work grows with the length.
  it("texts that are put side by side are masked side by side", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...sample(3).map(({ text }) => text)), { maxLength: 30 }), (texts) => {
        expect(mask(texts.join(" | "))).toBe(texts.map(mask).join(" | "));
      }),
      { numRuns: 100, seed: 5 },
    );
  });

  it("takes 1 MiB of anything", () => {
    const size = 1_048_576;
    for (const bad of [
      "'",
      '"a',
      "<",
      "<num",
      "1",
      "1 ",
      "a.",
      "://",
      "=",
      "/",
      "\\",
      "1:",
      "0x",
      "\u0000",
      "Jun ",
      "Mon ",
      "\ud800",
      "(",
      "-1e",
      "@a.",
      "a_1",
    ]) {
      const text = bad.repeat(Math.ceil(size / bad.length)).slice(0, size);
      expect(mask(text).length).toBeLessThan(size * 6);
    }
  });

  it("can say what it hid", () => {
    expect(hiddenIn("block blk_12 took 5 ms at 10.0.0.1:80")).toEqual([
      { placeholder: "blk_<num>", text: "blk_12" },
      { placeholder: "<duration>", text: "5 ms" },
      { placeholder: "<ip>", text: "10.0.0.1:80" },
    ]);
  });
});
