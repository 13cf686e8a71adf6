import { describe, expect, it } from "vitest";
import { createMakegood, createMemoryStore, isMakegoodError, type StandardSchemaV1, topic } from "../../../src/index.ts";
import { MakegoodError } from "../../../src/message/errors.ts";
import type { Store } from "../../../src/store/store.ts";

/** A Standard Schema by hand: `{ amount: "12" }` in, `{ amount: 12 }` out. */
const amounts: StandardSchemaV1<{ amount: string }, { amount: number }> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) => {
      const amount = Number((value as { amount?: unknown } | null)?.amount);
      return Number.isFinite(amount) ? { value: { amount } } : { issues: [{ message: "not a number", path: ["amount"] }] };
    },
  },
};

const plain = topic("billing/finalize", { sink: () => undefined });
const typed = topic("billing/amount", { schema: amounts, sink: ({ amount }) => void amount.toFixed(2) });

async function open(store: Store = createMemoryStore()) {
  return createMakegood({ store, topics: [plain, typed] });
}

const codeOf = async (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => "no error",
    (error) => (isMakegoodError(error) ? error.code : `not ours: ${String(error)}`),
  );

describe("enqueue", () => {
  it("returns { id, inserted }, the first id for the same key, and a conflict with both ids for another payload (DO-5, DF-17)", async () => {
    await using mg = await open();
    const first = await mg.enqueue(plain, { a: 1 }, { key: "k" });
    expect(first.inserted).toBe(true);
    expect(await mg.enqueue("billing/finalize", { a: 1 }, { key: "k" })).toEqual({ id: first.id, inserted: false });
    const conflict = await mg.enqueue(plain, { a: 2 }, { key: "k" }).catch((error) => error);
    expect(conflict).toMatchObject({ code: "key_conflict", detail: { id: first.id, key: "k", topic: "billing/finalize" } });
    expect(conflict.detail.refusedId).not.toBe(first.id);
  });

  it("refuses what has no JSON form, is too large or too deep, without a crash (fault 47)", async () => {
    await using mg = await open();
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    let deep: unknown = 1;
    for (let i = 0; i < 201; i++) deep = [deep];
    let abyss: unknown = 1;
    for (let i = 0; i < 200_000; i++) abyss = { abyss };
    const throwing = {
      toJSON: () => {
        throw new Error("no");
      },
    };
    for (const bad of [
      undefined,
      () => 1,
      Symbol("s"),
      1n,
      { n: 1n },
      circular,
      deep,
      abyss,
      throwing,
      "\ud800",
      { "\udfff": 1 },
    ]) {
      expect(await codeOf(mg.enqueue(plain, bad))).toBe("invalid_payload");
    }
    expect(await codeOf(mg.enqueue(plain, "x".repeat(1_048_575)))).toBe("payload_too_large");
    expect(await codeOf(mg.enqueue(plain, "é".repeat(524_288)))).toBe("payload_too_large");
    expect((await mg.enqueue(plain, "x".repeat(1_048_574))).inserted).toBe(true);
    expect((await mg.enqueue(plain, ["\\ud800", "😀", null, "\u0000"])).inserted).toBe(true);
    expect((await mg.enqueue(plain, JSON.parse(`${"[".repeat(200)}1${"]".repeat(200)}`))).inserted).toBe(true);
  });

  it("checks every option", async () => {
    await using mg = await open();
    const bad = (options: object) => codeOf(mg.enqueue(plain, 1, options));
    expect(await bad({ key: "k".repeat(10_000) })).toBe("key_too_long");
    expect(await bad({ key: "é".repeat(128) })).toBe("key_too_long");
    for (const options of [
      { key: "a\u0000b" },
      { key: "" },
      { key: 7 },
      { key: "\ud800" },
      { tenantId: "t".repeat(256) },
      { orderingKey: "\u001e" },
      { delayMs: -1 },
      { delayMs: Number.NaN },
      { delayMs: 1e300 },
      { priority: 101 },
      { priority: 1.5 },
      { traceparent: "x" },
      { id: "not-a-uuid" },
      { id: "0190a0a0-0000-4000-8000-000000000000" },
    ])
      expect(await bad(options)).toBe("invalid_message");
    expect(await codeOf(mg.enqueue("billing/nope", 1))).toBe("unknown_topic");
    // @ts-expect-error a topic's name is namespace/name
    expect(await codeOf(mg.enqueue("NOT A TOPIC", 1))).toBe("unknown_topic");
  });

  it("refuses a payload that does not fit the schema, and stores the input's text", async () => {
    await using mg = await open();
    const error = await mg.enqueue(typed, { amount: "many" }).catch((error) => error);
    expect(error).toMatchObject({
      code: "payload_rejected_by_schema",
      detail: { issues: [{ path: "amount", message: "not a number" }] },
    });
    const { id } = await mg.enqueue(typed, { amount: "12" });
    expect((await mg.store.get(id))?.payload).toBe('{"amount":"12"}');
    // @ts-expect-error the payload is typed by the schema's input
    expect(await codeOf(mg.enqueue(typed, { amount: {} }))).toBe("payload_rejected_by_schema");
  });
});

describe("batches", () => {
  it("is all or nothing and names every element that is wrong", async () => {
    await using mg = await open();
    const error = await mg
      .enqueueMany(plain, [{ payload: 1 }, { payload: undefined }, { payload: 2, priority: 500 }])
      .catch((e) => e);
    expect(error).toMatchObject({
      code: "invalid_payload",
      detail: {
        index: 1,
        errors: [
          { index: 1, code: "invalid_payload" },
          { index: 2, code: "invalid_message" },
        ],
      },
    });
    await mg.enqueue(plain, "first", { key: "taken" });
    const conflict = await mg.enqueueMany(plain, [{ payload: 1 }, { payload: 2, key: "taken" }]).catch((e) => e);
    expect(conflict).toMatchObject({ code: "key_conflict", detail: { errors: [{ index: 1, code: "key_conflict" }] } });
    expect((await mg.store.list({ limit: 10 })).data).toHaveLength(1);
    const done = await mg.enqueueMany(
      plain,
      Array.from({ length: 1_000 }, (_, i) => ({ payload: i, key: `k${i}` })),
    );
    expect(done.every(({ inserted }) => inserted)).toBe(true);
    const over = await mg
      .enqueueMany(
        plain,
        Array.from({ length: 1_001 }, () => ({ payload: 1 })),
      )
      .catch((e) => e);
    expect(over).toMatchObject({ code: "invalid_message", detail: { limit: 1_000 } });
    expect(await mg.enqueueMany(plain, [])).toEqual([]);
  });

  it("takes text byte for byte and refuses what is not JSON (B, fault 47)", async () => {
    await using mg = await open();
    const text = '{"a":1e400, "a":12345678901234567890,"n":"\\u0000","__proto__":{"x":1}, "s":"\\ud800"}';
    const [result] = await mg.enqueueText([{ topic: "billing/finalize", payloadText: text }]);
    expect((await mg.store.get(result!.id))?.payload).toBe(text);
    for (const bad of ["", "{", "{'a':1}", '"\ud800"', "NaN", "\u0000", `${"[".repeat(300)}${"]".repeat(300)}`]) {
      expect(await codeOf(mg.enqueueText([{ topic: "billing/finalize", payloadText: bad }]))).toBe("invalid_payload");
    }
    expect(await codeOf(mg.enqueueText([{ topic: "billing/amount", payloadText: '{"amount":"x"}' }]))).toBe(
      "payload_rejected_by_schema",
    );
  });
});

/** A store whose enqueue writes, and then loses the answer, `times` times. */
function losingAnswers(times: number, code: "outcome_unknown" | "store_unavailable"): Store & { calls: number } {
  const store = createMemoryStore();
  const wrapped = Object.assign(Object.create(store) as Store & { calls: number }, {
    calls: 0,
    enqueue: async (...args: Parameters<Store["enqueue"]>) => {
      wrapped.calls++;
      const results = await store.enqueue(...args);
      if (wrapped.calls <= times) throw new MakegoodError(code, "the connection was lost");
      return results;
    },
  });
  return wrapped;
}

describe("a commit in doubt", () => {
  it("is tried again with the same id: one row, inserted (fault 10)", async () => {
    for (const code of ["outcome_unknown", "store_unavailable"] as const) {
      const store = losingAnswers(2, code);
      await using mg = await open(store);
      expect((await mg.enqueue(plain, 1, { key: "k" })).inserted).toBe(true);
      expect((await mg.enqueue(plain, 1)).inserted).toBe(true);
      expect((await mg.store.list({ limit: 10 })).data).toHaveLength(2);
      expect(store.calls).toBe(4);
    }
  });

  it("gives up after a few tries with the store's own error", async () => {
    await using mg = await open(losingAnswers(100, "outcome_unknown"));
    expect(await codeOf(mg.enqueue(plain, 1))).toBe("outcome_unknown");
  });
});

describe("concurrent callers", () => {
  it("one that is refused does not spoil the others", async () => {
    const store = losingAnswers(0, "outcome_unknown");
    await using mg = await open(store);
    await mg.enqueue(plain, "a", { key: "taken" });
    const calls = Array.from({ length: 100 }, (_, i) =>
      mg.enqueue(plain, i, { key: i === 50 ? "taken" : `k${i}` }).catch((e) => e.code),
    );
    const results = await Promise.all(calls);
    expect(results.filter((result) => result === "key_conflict")).toHaveLength(1);
    expect(results.filter((result) => result.inserted === true)).toHaveLength(99);
  });

  it("a signal that is aborted before the write refuses the call", async () => {
    await using mg = await open();
    await expect(mg.enqueue(plain, 1, { signal: AbortSignal.abort(new Error("gone")) })).rejects.toThrow("gone");
    expect((await mg.store.list({ limit: 10 })).data).toHaveLength(0);
  });

  it("close waits for what is being accepted and refuses the rest as closed", async () => {
    const mg = await open();
    const call = mg.enqueue(plain, 1);
    await mg.close();
    expect((await call).inserted).toBe(true);
    expect(await codeOf(mg.enqueue(plain, 1))).toBe("closed");
  });
});
