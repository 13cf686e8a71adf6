/** Causes: what a text, a code, a member or a status says, which of them speaks first, and what the rules make of it. */
import { describe, expect, it } from "vitest";
import { SHIPPED_SIGNATURES } from "../../../src/recovery/causes/catalogue/shipped.ts";
import { CAUSES } from "../../../src/recovery/causes/cause.ts";
import { causeFinder, causeOf } from "../../../src/recovery/causes/cause-of.ts";
import { phrasesOf } from "../../../src/recovery/causes/phrase.ts";
import { parseSignature, type Signature, sign } from "../../../src/recovery/causes/signature.ts";
import { evaluateRules } from "../../../src/recovery/rules/evaluate.ts";

const cause = (errorCode: string, errorMessage = "", stackTrace: string | null = null): string => {
  const { cause: name, detail } = causeOf({ errorCode, errorMessage, stackTrace });
  return detail === null ? name : `${name}.${detail}`;
};
const action = (errorCode: string, errorMessage = ""): string | undefined =>
  evaluateRules(errorCode, errorMessage).recommended?.action;

describe("the cause of a failure", () => {
  it("is found in the words of many systems, and each has its action", () => {
    const cases: [code: string, text: string, cause: string, action: string][] = [
      ["http_500", "deadlock detected while posting ledger entry 7", "transient_db", "retry_exponential"],
      ["http_400", "the ledger row is locked by another session", "transient_db", "retry_exponential"],
      ["http_409", "invoice 12 was changed by another user since you read it", "conflict_or_duplicate", "retry_exponential"],
      ["http_409", "shipment 9 already exists", "conflict_or_duplicate.done", "skip_task"],
      ["http_400", "This parcel has already been dispatched", "conflict_or_duplicate.done", "skip_task"],
      ["UNKNOWN", "transaction 44 is in doubt", "conflict_or_duplicate.partial", "rollback_state"],
      ["http_503", "the node is starting up, not yet accepting requests", "outage.passing", "retry_exponential"],
      ["http_503", "no healthy backend", "outage", "circuit_breaker"],
      ["http_403", "Too many calls: at most 20 requests per second", "overload_or_quota", "retry_exponential"],
      ["http_429", "Monthly quota exceeded, please upgrade your plan", "overload_or_quota.spent", "notify_ops"],
      ["UNKNOWN", "dial tcp 10.0.0.7:9000: connection refused", "network", "retry_exponential"],
      ["UNKNOWN", "no answer within 5000 ms", "timeout", "retry_exponential"],
      ["http_400", "the access token has expired", "auth_or_permission", "notify_ops"],
      ["UNKNOWN", "certificate of shop.example has expired", "config_or_tls", "notify_ops"],
      ["http_500", "payload is not valid JSON: unexpected token at 4", "bad_payload", "manual_intervention"],
      ["http_500", "field 'iban' is required", "bad_payload", "manual_intervention"],
      ["http_400", "message is too large: 3 MB, at most 1 MB", "bad_payload", "manual_intervention"],
      ["http_404", "model 'nova-3' does not exist", "missing_target.model", "fallback_model"],
      ["http_404", "queue 'refunds' does not exist", "missing_target.set_up", "notify_ops"],
      ["http_400", "the contact has been deleted", "missing_target.gone", "skip_task"],
      ["http_400", "the subscriber has opted out", "business_refusal.unwanted", "skip_task"],
      ["http_402", "the card was declined", "business_refusal", "manual_intervention"],
      ["http_403", "your account has been suspended", "business_refusal.account", "notify_ops"],
      ["http_500", "no space left on device", "resource_exhausted", "notify_ops"],
      ["http_500", "OutOfMemoryError: heap space", "resource_exhausted.process", "circuit_breaker"],
      ["http_500", 'relation "parcels" does not exist', "bug_in_receiver.release", "notify_ops"],
      ["http_400", "idempotency key k1 was used with different parameters", "bug_in_sender", "manual_intervention"],
    ];
    for (const [code, text, found, does] of cases)
      expect([text, cause(code, text), action(code, text)]).toEqual([text, found, does]);
  });

  it("R14: a deadlock behind a 500 is tried again, a null pointer behind a 500 is for a person; neither opens a breaker", () => {
    expect(action("http_500", "ERROR: deadlock detected")).toBe("retry_exponential");
    expect(action("http_500", "Transaction was chosen as the deadlock victim")).toBe("retry_exponential");
    expect(action("http_500", "java.lang.NullPointerException")).toBe("manual_intervention");
    expect(action("http_500", "TypeError: Cannot read properties of null (reading 'total')")).toBe("manual_intervention");
    expect(action("http_500")).toBe("circuit_breaker");
  });

  it("is read from codes in any spelling, in the code, in a member of JSON or XML, or as SQLSTATE", () => {
    expect(cause("40P01")).toBe("transient_db");
    expect(cause("http_400", '{"error":{"type":"insufficient_quota"}}')).toBe("overload_or_quota.spent");
    expect(cause("http_400", "<Error><Code>SlowDown</Code></Error>")).toBe("overload_or_quota");
    expect(cause("UNKNOWN", "insert failed (SQLSTATE 23505)")).toBe("conflict_or_duplicate.done");
    expect(cause("cardDeclined")).toBe("business_refusal");
  });

  it("is what the text says where a status says something else, and the status where the text says nothing", () => {
    expect(cause("http_403", "rate limit exceeded")).toBe("overload_or_quota");
    expect(cause("http_404", "lorem ipsum")).toBe("missing_target");
    expect(cause("E77", "HTTP 410: lorem ipsum")).toBe("missing_target.gone");
    expect(causeOf({ errorCode: "E77", errorMessage: "lorem ipsum", httpStatus: 401 }).cause).toBe("auth_or_permission");
  });

  it("is not read from frames and addresses, and is read from the line that a trace ends with", () => {
    expect(cause("UNKNOWN", "lorem ipsum", "    at Timeout.deadlock (/app/timeout.js:1:2)")).toBe("unknown");
    expect(cause("UNKNOWN", "see https://docs.example/errors/deadlock")).toBe("unknown");
    const trace =
      'Traceback (most recent call last):\n  File "/app/a.py", line 4, in charge\nDeadlockDetected: deadlock detected';
    expect(cause("http_500", "lorem ipsum", trace)).toBe("transient_db");
  });

  it("comes with a sentence, the signature and how certain it is", () => {
    expect(causeOf({ errorCode: "http_500", errorMessage: "Deadlock found" })).toEqual({
      cause: "transient_db",
      detail: null,
      certainty: 0.97,
      evidence: 'The text says "deadlock": the database ended a deadlock by giving up this transaction.',
      signature: "deadlock",
    });
    expect(causeOf({ errorCode: "429" })).toMatchObject({ cause: "overload_or_quota", certainty: 0.4, signature: null });
    expect(causeOf({ errorCode: "" })).toMatchObject({ cause: "unknown", certainty: 0, signature: null });
  });
});

describe("rules on causes", () => {
  it("REC-9, REC-10: a bare code is answered by the seeds' rules alone, exactly as before", () => {
    const bare: [string, string, number, string][] = [
      ["TIMEOUT", "retry_exponential", 0.85, "timeout_retry"],
      ["RATE_LIMIT", "retry_exponential", 0.8, "rate_limit_backoff"],
      ["429", "retry_exponential", 0.8, "rate_limit_backoff"],
      ["http_503", "circuit_breaker", 0.75, "server_error_fallback"],
      ["BUDGET_EXCEEDED", "fallback_model", 0.7, "budget_fallback"],
      ["http_401", "notify_ops", 0.6, "auth_notify"],
    ];
    for (const [code, does, confidence, rule] of bare) {
      const { recommended } = evaluateRules(code, "");
      expect([code, recommended]).toMatchObject([code, { action: does, confidence, rules: [rule] }]);
    }
  });

  it("there is always a first suggestion, and a vague cause makes it less sure", () => {
    for (const code of ["", "http_418", "http_404", "X", "301"]) expect([code, action(code)]).not.toEqual([code, undefined]);
    const vague = evaluateRules("http_404", "lorem ipsum");
    const clear = evaluateRules("http_404", "the customer does not exist");
    expect(vague.confidence).toBeLessThan(clear.confidence);
  });

  it("a cause in a rule names a kind, or all kinds of it", () => {
    const passing = evaluateRules("http_503", "the service is starting up").rulesEvaluated.filter(({ matched }) => matched);
    expect(passing.map(({ ruleId }) => ruleId)).toEqual(["cause_passing", "cause_down", "server_error_fallback"]);
  });
});

describe("the catalogue", () => {
  it("can be stored as it is shipped, names each cause, and no id twice", () => {
    for (const one of SHIPPED_SIGNATURES)
      expect(parseSignature(JSON.parse(JSON.stringify(one)))).toEqual({ ok: true, value: one });
    expect(new Set(SHIPPED_SIGNATURES.map(({ id }) => id)).size).toBe(SHIPPED_SIGNATURES.length);
    const named = new Set(SHIPPED_SIGNATURES.map((one) => one.cause));
    expect(CAUSES.filter((one) => one !== "unknown" && !named.has(one))).toEqual([]);
  });

  it("names every mistake of a signature at once", () => {
    const parsed = parseSignature({ id: "A b", cause: "weather", certainty: 2, words: ["("], status: [99], codes: ["-"], x: 1 });
    const fields = parsed.ok ? [] : parsed.mistakes.map(({ field }) => field);
    expect(new Set(fields)).toEqual(new Set(["", "id", "cause", "certainty", "says", "words[0]", "status[0]", "codes[0]"]));
  });

  it("the most certain signature speaks, of equals the first; one that is switched off does not", () => {
    const lorem = (id: string, certainty: number): Signature => sign(id, "outage", certainty, id, { words: ["lorem"] });
    const find = (...list: Signature[]) => causeFinder(list)({ errorCode: "X", errorMessage: "Lorem ipsum" }).signature;
    expect(find(lorem("a", 0.6), lorem("b", 0.9))).toBe("b");
    expect(find(lorem("a", 0.9), lorem("b", 0.9))).toBe("a");
    expect(find({ ...lorem("a", 0.9), enabled: false })).toBe(null);
  });

  it("a phrase is asked only where one of its words stands, and answers as its pattern does", () => {
    const finds = (source: string, words: string): string | undefined => phrasesOf(source)[0]?.find(words);
    expect(finds("token … (expired|revoked)", "the token of bob was revoked")).toBe("token of bob was revoked");
    expect(finds("token … (expired|revoked)", "the token of bob was used up and then revoked")).toBe(undefined);
    expect(finds("dead ?lock(ed)?", "deadlocked")).toBe("deadlocked");
    expect(finds("(not )?(un)?known", "unknown")).toBe("unknown");
    expect(finds("lock", "clockwork")).toBe(undefined);
  });

  it("a hostile text of full length is read in a moment", () => {
    causeOf({ errorCode: "X", errorMessage: "warm" });
    const startMs = performance.now();
    for (const word of ["a ", "token ", "not ", "idempotency ", "invalid field "])
      causeOf({ errorCode: "X", errorMessage: word.repeat(4_096), stackTrace: word.repeat(4_096) });
    expect(performance.now() - startMs).toBeLessThan(5_000);
  });
});
