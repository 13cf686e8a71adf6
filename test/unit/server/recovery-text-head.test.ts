/**
 * Long texts in a report: the beginning that counts is read exactly as JSON.parse would read it, wherever it is cut, and what is refused
 * and what is kept does not depend on how long the text is.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { headOf } from "../../../src/recovery/failures/clean-text.ts";
import { readFailure } from "../../../src/server/handlers/failures.ts";
import type { Refusal } from "../../../src/server/http.ts";

/** JSON of a text as others write it: any character may be escaped, in small or capital letters. */
const piece = fc.constantFrom(
  '\\"',
  "\\\\",
  "\\/",
  "\\n",
  "\\u0001",
  "\\uD83D\\uDE00",
  "\\ud800",
  "\\u005c",
  "u",
  "a",
  "é",
  "\u{1f600}",
);
const source = fc.array(piece, { maxLength: 60 }).map((pieces) => `"${pieces.join("")}"`);

describe("the beginning of a text", () => {
  it("is what JSON.parse makes of it, cut anywhere", () => {
    fc.assert(
      fc.property(source, fc.integer({ min: 0, max: 8 }), (text, charsMax) => {
        const whole = JSON.parse(text) as string;
        const head = headOf(text, charsMax);
        return whole.startsWith(head) && head.length >= Math.min(charsMax, whole.length);
      }),
      { numRuns: 2_000 },
    );
  });

  it("reads no more of a mebibyte than is asked for", () => {
    expect(headOf(JSON.stringify("\\".repeat(1 << 20)), 100).length).toBeLessThan(700);
  });
});

describe("a report with long texts", () => {
  const read = (payload: string) => readFailure(`{ "failure_payload" : ${payload} , "idempotency_key":"k"}`, null);
  const long = "\u0001".repeat(1 << 19);

  it("keeps its exact source, and the text as far as it counts", () => {
    const payload = `{"error_type":"E","raw":${JSON.stringify(long)},"stack_trace":${JSON.stringify(`x\n${long}`)}, "n":1e400}`;
    const found = read(payload);
    expect(found.failurePayload === payload).toBe(true);
    expect([found.errorMessage.slice(0, 65_536) === long.slice(0, 65_536), found.stackTrace?.slice(0, 3)]).toEqual([
      true,
      "x\n\u0001",
    ]);
  });

  it("takes the last of two members of one name, and a null for none, as JSON.parse does", () => {
    const found = read('{"error_type":"A","error_typ\\u0065":"B","raw":null,"error_message":"m","__proto__":{"raw":"p"}}');
    expect(found).toMatchObject({ errorCode: "B", errorMessage: "m" });
  });

  it.each([
    ["[1]", "failure_payload"],
    ["null", "failure_payload"],
    ['{"raw":5}', "failure_payload.raw"],
    ['{"raw":["x"]}', "failure_payload.raw"],
    ['{"raw":"x","topic":false}', "failure_payload.topic"],
    [`{"raw":"x","topic":${JSON.stringify(long)}}`, "failure_payload.topic"],
    ['{"more":"x"}', "failure_payload.error_type"],
  ])("names the fault, case %#", (payload, field) => {
    const refused = (() => {
      try {
        return read(payload);
      } catch (thrown) {
        return thrown;
      }
    })();
    const { errors } = JSON.parse((refused as Refusal).reply.body) as { errors: { field: string }[] };
    expect(errors.map((fault) => fault.field)).toEqual([field]);
  });
});
