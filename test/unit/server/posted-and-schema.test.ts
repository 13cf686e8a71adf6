/**
 * The scanner that cuts payloads out of a posted body, held against the schema that describes it: both take the same bodies, whatever is
 * wrong with them, and what the scanner cuts out means what was sent.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { check } from "../../../src/contract/faults.ts";
import { editBody, newMessage, newMessages } from "../../../src/contract/messages.ts";
import { LIMITS } from "../../../src/message/limits.ts";
import { readPosted } from "../../../src/server/posted.ts";
import { readExact } from "../../../src/server/read-request.ts";

const odd = fc.constantFrom<unknown>(
  null,
  true,
  0,
  -1,
  1.5,
  "",
  "a",
  "\u0000",
  "\u007f",
  "x".repeat(300),
  [],
  {},
  ["a/b"],
  1e9,
  4e10,
);
const name = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom("a/b", "billing/finalize") },
  { weight: 1, arbitrary: fc.constantFrom("a", "A/b", "a/b/c", "", "ä/b") },
);
const member = (good: fc.Arbitrary<unknown>) => fc.oneof({ weight: 12, arbitrary: good }, { weight: 1, arbitrary: odd });

const known = fc.record(
  {
    topic: member(name),
    payload: fc.jsonValue(),
    key: member(fc.string({ minLength: 1, maxLength: 20 })),
    tenant_id: member(fc.string({ minLength: 1, maxLength: 20 })),
    ordering_key: member(fc.string({ minLength: 1, maxLength: 20 })),
    delay_ms: member(fc.integer({ min: 0, max: 1_000 })),
    priority: member(fc.integer({ min: -100, max: 100 })),
  },
  { requiredKeys: ["topic", "payload"] },
);
const message = fc.oneof(
  { weight: 12, arbitrary: known },
  { weight: 1, arbitrary: known.map((fields) => ({ ...fields, prioritty: 1 })) },
);
const body = fc.oneof(
  { weight: 3, arbitrary: message },
  { weight: 1, arbitrary: fc.record({ messages: fc.array(message, { maxLength: 4 }) }) },
  { weight: 1, arbitrary: odd },
);

function scanned(text: string): unknown {
  try {
    const read = readPosted(text, LIMITS.payloadBytesMax);
    const all = [read].flat();
    if (all.some(({ faults }) => faults.length > 0)) return null;
    return all.map(({ message: of }) => (of ? (JSON.parse(of.payloadText) as unknown) : null));
  } catch {
    return null;
  }
}

describe("a posted body", () => {
  it("is taken by the scanner if and only if the schema takes it, with the payloads that were sent", () => {
    let taken = 0;
    fc.assert(
      fc.property(body, (value) => {
        const text = JSON.stringify(value);
        const sent = JSON.parse(text) as { messages?: { payload: unknown }[]; payload: unknown } | null;
        const batch = sent !== null && typeof sent === "object" && "messages" in sent;
        const found = scanned(text);
        expect(found !== null).toBe(check(batch ? newMessages : newMessage, sent).ok);
        if (found === null) return;
        taken++;
        expect(found).toEqual(batch ? sent?.messages?.map(({ payload }) => payload) : [sent?.payload]);
      }),
      { numRuns: 1_500 },
    );
    expect(taken).toBeGreaterThan(200);
  });

  it("of an edit likewise", () => {
    const edit = fc.record(
      { reason: member(fc.constant("why")), payload: fc.jsonValue(), revision: member(fc.nat()), force: member(fc.boolean()) },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(edit, (value) => {
        const text = JSON.stringify(value);
        const read = () => readExact(editBody, text, "payload", "invalid_request");
        if (check(editBody, JSON.parse(text)).ok)
          expect(JSON.parse(read().text)).toEqual(JSON.parse(JSON.stringify(value.payload)));
        else expect(read).toThrow();
      }),
      { numRuns: 1_000 },
    );
  });
});
