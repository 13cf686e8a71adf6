import { describe, expect, it } from "vitest";
import { DELIVERED, DUPLICATE } from "../../src/message/outcome.ts";
import { functionSink, reject, retry } from "../../src/sink/function.ts";
import { testContext, testDelivery } from "../../src/testing/sink-conformance.ts";
import { send } from "./receiver.ts";

describe("function sink", () => {
  it("gives the parsed payload, the delivery and the context", async () => {
    const calls: unknown[] = [];
    const sink = functionSink<{ a: number }>((payload, delivery, context) => {
      calls.push(payload.a, delivery.payload, context.timeoutMs);
    });
    expect((await send(sink, { payload: '{"a":1}' }, 777)).outcome).toBe(DELIVERED);
    expect(calls).toEqual([1, '{"a":1}', 777]);
  });

  it("answers a synchronous handler without a promise and without reading the signal", () => {
    let reads = 0;
    const context = {
      timeoutMs: 1_000,
      get signal() {
        reads++;
        return AbortSignal.abort();
      },
    };
    expect(functionSink(() => undefined).deliver(testDelivery(), context)).toBe(DELIVERED);
    expect(functionSink(() => retry("later", { afterMs: 50 })).deliver(testDelivery(), context)).toMatchObject({
      kind: "retry",
      error: "later",
      retryAfterMs: 50,
    });
    expect(reads).toBe(0);
  });

  it("parses once per delivery, and rejects what does not parse", async () => {
    // Not checked inside the handler: what it throws is an outcome, and no failure of the test.
    const calls: unknown[] = [];
    const sink = functionSink((payload: unknown) => void calls.push(["handled", payload]), {
      parse: (text) => {
        calls.push(["parsed", text]);
        return `${text}, parsed`;
      },
    });
    expect((await send(sink, { payload: "raw" })).outcome).toBe(DELIVERED);
    expect(calls).toEqual([
      ["parsed", "raw"],
      ["handled", "raw, parsed"],
    ]);
    expect(
      (
        await send(
          functionSink(() => undefined),
          { payload: "{" },
        )
      ).outcome,
    ).toMatchObject({
      kind: "reject",
      code: "payload_unreadable",
    });
  });

  it.each([
    ["nothing", () => undefined, { kind: "delivered" }],
    ["null", () => null, { kind: "delivered" }],
    ["some value of its own", () => ({ id: 7, kind: "order" }), { kind: "delivered" }],
    ["duplicate", () => DUPLICATE, { kind: "duplicate" }],
    ["reject", () => reject("no such account"), { kind: "reject", code: "rejected", error: "no such account" }],
    [
      "a thrown outcome",
      () => {
        throw reject("no", { code: "bad_account" });
      },
      { kind: "reject", code: "bad_account" },
    ],
    [
      "a thrown error",
      () => {
        throw new Error("boom\nline 2");
      },
      { kind: "retry", code: "handler_error", error: "boom\\nline 2" },
    ],
    [
      "a thrown string",
      () => {
        throw "boom";
      },
      { kind: "retry", code: "handler_error", error: "boom" },
    ],
    [
      "thrown nothing",
      () => {
        throw undefined;
      },
      { kind: "retry", code: "handler_error" },
    ],
    ["an incomplete outcome", () => ({ kind: "unknown" }), { kind: "unknown", code: "handler_error" }],
    ["what only a worker may say", () => ({ kind: "interrupted" }), { kind: "retry", code: "handler_error" }],
  ])("returned synchronously and asynchronously: %s", async (_name, handler: () => unknown, expected) => {
    expect((await send(functionSink(handler))).outcome).toMatchObject(expected);
    expect((await send(functionSink(async () => handler()))).outcome).toMatchObject(expected);
  });

  it("reports a handler that outlives its deadline as unknown and swallows what it throws later", async () => {
    let fail: (reason: Error) => void = () => undefined;
    const late = new Promise<never>((_resolve, reject) => {
      fail = reject;
    });
    const unheard: unknown[] = [];
    const hear = (thrown: unknown) => void unheard.push(thrown);
    process.on("unhandledRejection", hear);
    const { outcome } = await send(
      functionSink(() => late),
      {},
      50,
    );
    expect(outcome).toMatchObject({ kind: "unknown", code: "timeout" });
    fail(new Error("late"));
    await new Promise((resolve) => setTimeout(resolve, 50));
    process.off("unhandledRejection", hear);
    expect(unheard).toEqual([]);
  });

  it("reports an abort as unknown, also when the signal was aborted before the handler returned", async () => {
    const context = testContext();
    context.abort();
    const outcome = await functionSink(() => new Promise(() => undefined)).deliver(testDelivery(), context);
    context[Symbol.dispose]();
    expect(outcome).toMatchObject({ kind: "unknown", code: "aborted" });
  });

  it("has a probe only when it is given one", async () => {
    expect(functionSink(() => undefined).probe).toBeUndefined();
    const sink = functionSink(() => undefined, { probe: async () => DELIVERED });
    expect(await sink.probe?.(testDelivery(), testContext(10))).toBe(DELIVERED);
  });
});
