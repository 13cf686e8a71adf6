/** Error codes: which spellings are one code, which are not, and when the message is read. */
import { describe, expect, it } from "vitest";
import { beginsWith, codeMeant, groupedCode, isCode, readCode, wordsOf } from "../../../src/recovery/rules/code-words.ts";

const is = (code: string, value: string, message = ""): boolean => isCode(readCode(code, message), codeMeant(value));

describe("spellings of one code", () => {
  it("CON-22: RATE_LIMIT in every documented spelling, in the failure and in the rule", () => {
    const spellings = [
      "RATE_LIMIT",
      "RATE_LIMITED",
      "rate-limited",
      "RateLimitExceeded",
      "rateLimitError",
      "Rate limit exceeded",
      "429",
      "http_429",
      "HTTP429",
      "HTTP 429",
      "status code 429",
      "TOO_MANY_REQUESTS",
      "429 Too Many Requests",
      "ThrottlingException",
    ];
    for (const code of spellings)
      for (const value of spellings) expect([code, value, is(code, value)]).toEqual([code, value, true]);
  });

  it("timeouts, connections, credentials and budgets have their classes", () => {
    const classes: [string, string[]][] = [
      ["TIMEOUT", ["TIMEOUT"]],
      ["ETIMEDOUT", ["TIMEOUT"]],
      ["TimeoutError", ["TIMEOUT"]],
      ["connect_timeout", ["TIMEOUT"]],
      ["UND_ERR_HEADERS_TIMEOUT", ["TIMEOUT"]],
      ["DEADLINE_EXCEEDED", ["TIMEOUT"]],
      ["http_408", ["HTTP_4XX", "TIMEOUT"]],
      ["ECONNREFUSED", ["CONNECTION"]],
      ["connection_failed", ["CONNECTION"]],
      ["EAI_AGAIN", ["CONNECTION"]],
      ["http_401", ["HTTP_4XX", "AUTH"]],
      ["Unauthorized", ["AUTH"]],
      ["AUTH_FAILED", ["AUTH"]],
      ["BUDGET_EXCEEDED", ["BUDGET"]],
      ["http_402", ["HTTP_4XX", "BUDGET"]],
      ["http_503", ["HTTP_5XX"]],
      ["503", ["HTTP_5XX"]],
      ["SERVICE_UNAVAILABLE", ["HTTP_5XX"]],
      ["GATEWAY_TIMEOUT", ["HTTP_5XX"]],
      ["504", ["HTTP_5XX"]],
      ["HTTP_5XX", ["HTTP_5XX"]],
      ["http_404", ["HTTP_4XX"]],
      ["CARD_DECLINED", ["UNKNOWN"]],
      ["", ["UNKNOWN"]],
    ];
    for (const [code, expected] of classes) expect([code, [...readCode(code).classes]]).toEqual([code, expected]);
  });

  it("a finer code is not its neighbour", () => {
    expect(is("ECONNRESET", "CONNECTION_RESET")).toBe(true);
    expect(is("ECONNRESET", "CONNECTION")).toBe(true);
    expect(is("ECONNRESET", "ECONNREFUSED")).toBe(false);
    expect(is("http_401", "403")).toBe(false);
    expect(is("http_503", "HTTP_5XX")).toBe(true);
    expect(is("http_503", "HTTP_500")).toBe(false);
    expect(is("ETIMEDOUT", "408")).toBe(false);
  });

  it("a code of one's own is one code in every spelling, and every word of it counts", () => {
    expect(is("cardDeclined", "CARD_DECLINED")).toBe(true);
    expect(is("card-declined", "CardDeclined")).toBe(true);
    expect(is("CARD_DECLINED_TWICE", "CARD_DECLINED")).toBe(false);
    expect(is("PAYMENT_FAILED", "PAYMENT_EXCEPTION")).toBe(false);
  });
});

describe("DR-28: words, never substrings", () => {
  it("DR-28: AUTH is not in AUTHOR, 500 is not in 15000, TIMEOUT is not in TIMEOUTABLE", () => {
    for (const [code, value] of [
      ["AUTHOR_MISSING", "AUTH"],
      ["15000", "500"],
      ["ROW_15000", "500"],
      ["HTTP_5031", "503"],
      ["TIMEOUTABLE", "TIMEOUT"],
      ["PRORATE_LIMIT", "RATE_LIMIT"],
      ["BUDGETARY", "BUDGET"],
      ["RECONNECTIONS", "CONNECTION"],
    ] as const) {
      expect([code, value, is(code, value)]).toEqual([code, value, false]);
    }
  });

  it("DR-28: a number is a status only where it stands as one", () => {
    expect(readCode("ORA_600").codes).toEqual(new Set());
    expect(readCode("LIMIT_500_ROWS").codes).toEqual(new Set());
    expect(readCode("handler_error", "wrote 503 rows in 429 ms").codes).toEqual(new Set());
    expect(readCode("handler_error", "the receiver answered with status 503").codes).toEqual(new Set(["HTTP_503"]));
  });

  it("a prefix is made of whole words", () => {
    expect(beginsWith(readCode("BUDGET_MONTHLY_LIMIT"), wordsOf("budget"))).toBe(true);
    expect(beginsWith(readCode("BUDGETARY_LIMIT"), wordsOf("BUDGET"))).toBe(false);
    expect(beginsWith(readCode("MY_BUDGET"), wordsOf("BUDGET"))).toBe(false);
    expect(beginsWith(readCode("BUDGET"), wordsOf("BUDGET_MONTHLY"))).toBe(false);
  });
});

describe("the message", () => {
  it("is read where the code says nothing, and only for phrases that are clear in a sentence", () => {
    for (const code of ["", "Error", "UNKNOWN", "handler_error", "UnknownError"]) {
      expect(readCode(code, "Rate limit exceeded, try later")).toMatchObject({ from: "message", codes: new Set(["RATE_LIMIT"]) });
    }
    expect(readCode("", "connect ECONNREFUSED 127.0.0.1:80").classes).toEqual(new Set(["CONNECTION"]));
    expect(readCode("", "Connection timed out").classes).toEqual(new Set(["TIMEOUT"]));
    expect(readCode("", "the author of the budget has a connection").classes).toEqual(new Set(["UNKNOWN"]));
  });

  it("never overrules a code that says something", () => {
    expect(readCode("CARD_DECLINED", "request timed out")).toMatchObject({ from: "code", classes: new Set(["UNKNOWN"]) });
    expect(readCode("http_401", "rate limit exceeded").codes.has("RATE_LIMIT")).toBe(false);
  });

  it("takes 1 MiB, control characters and names of Object's members", () => {
    const mebibyte = "timed out ".repeat(104_858);
    expect(readCode(mebibyte, mebibyte).classes).toEqual(new Set(["TIMEOUT"]));
    expect(readCode("\u0000\u001b[31mTIME\u0007OUT").classes).toEqual(new Set(["TIMEOUT"]));
    for (const code of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
      expect(readCode(code).classes).toEqual(new Set(["UNKNOWN"]));
      expect(codeMeant(code)).not.toBe("");
    }
  });
});

describe("R15", () => {
  it("R15: RATE_LIMITED and 429 are one code of a group; other codes stay as they were said", () => {
    for (const code of ["RATE_LIMITED", "RATE_LIMIT", "429", "http_429", "TOO_MANY_REQUESTS", "rateLimitExceeded"])
      expect([code, groupedCode(code)]).toEqual([code, "http_429"]);
    for (const code of ["PRORATE_LIMIT", "http_503", "TIMEOUT", "ORATE", "E4290", "card_declined"])
      expect(groupedCode(code)).toBe(code);
  });

  it("R15: NO_TIMEOUT_SET is no timeout", () => {
    for (const code of ["NO_TIMEOUT_SET", "TIMEOUT_NOT_SET", "InvalidTimeout", "timeout_missing"])
      expect([code, [...readCode(code).classes]]).toEqual([code, ["UNKNOWN"]]);
    for (const code of ["TIMEOUT", "SET_FAILED_TIMEOUT", "NO_ANSWER_TIMEOUT"])
      expect([...readCode(code).classes]).toEqual(["TIMEOUT"]);
  });
});
