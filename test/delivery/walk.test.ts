import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import {
  createMemoryStore,
  DUPLICATE,
  type Outcome,
  reject,
  retry,
  type Sink,
  type StandardSchemaV1,
  topic,
} from "../../src/index.ts";
import { pause, setUp, until, wrap } from "../unit/delivery/support.ts";

const quick = { baseMs: 1, maxMs: 5 } as const;

describe("the walk", () => {
  it("delivers what was accepted: once, with its key, its exact text and its attempt number", async () => {
    const seen: unknown[] = [];
    const walk = topic<{ n: number }>("a/walk", {
      sink: (payload, { payload: text, idempotencyKey, attempt, tenantId, schemaVersion }) => {
        seen.push({ payload, text, idempotencyKey, attempt, tenantId, schemaVersion });
      },
      schemaVersion: 3,
    });
    const { mg, count, of } = await setUp([walk]);
    mg.work();
    const { id } = await mg.enqueue(walk, { n: 1 }, { key: "k", tenantId: "t" });
    const second = await mg.enqueueText([{ topic: "a/walk", payloadText: '{"n" : 2.0}' }]);
    await until(async () => (await count("delivered")) === 2);
    expect(seen).toEqual([
      { payload: { n: 1 }, text: '{"n":1}', idempotencyKey: "k", attempt: 1, tenantId: "t", schemaVersion: 3 },
      { payload: { n: 2 }, text: '{"n" : 2.0}', idempotencyKey: second[0]?.id, attempt: 1, tenantId: null, schemaVersion: 3 },
    ]);
    expect((await mg.store.history(id)).attempts).toMatchObject([{ attempt: 1, outcome: "delivered", counted: true }]);
    await until(() => of("attempt").length === 2);
    await mg.close();
  });

  it("retries by the policy, then dies with its whole history; a replay gives a new budget", async () => {
    let healthy: boolean = false;
    const flaky = topic("a/flaky", {
      sink: async () => {
        await pause(1);
        if (!healthy) throw new Error("down\u0000");
      },
      retry: { attemptsMax: 3, ...quick },
    });
    const { mg, count } = await setUp([flaky]);
    mg.work();
    const { id } = await mg.enqueue(flaky, 1);
    await until(async () => (await count("dead")) === 1);
    const { attempts } = await mg.store.history(id);
    expect(attempts.map(({ outcome, code, error }) => [outcome, code, error])).toEqual(
      Array.from({ length: 3 }, () => ["retry", "handler_error", expect.stringContaining("down")]),
    );
    healthy = true;
    await mg.replay(id, { actor: "ann", reason: "fixed" });
    await until(async () => (await count("delivered")) === 1);
    await expect(mg.replay(id, { actor: "ann" })).rejects.toMatchObject({ code: "wrong_state" });
    await expect(mg.resolve("01900000-0000-7000-8000-000000000000", { actor: "ann" })).rejects.toMatchObject({
      code: "message_not_found",
    });
    await mg.close();
  });

  it("takes each outcome at its word", async () => {
    const outcomes: Record<string, () => unknown> = {
      delivered: () => undefined,
      duplicate: () => DUPLICATE,
      rejected: () => reject("never"),
      thrown: () => {
        throw reject("never, thrown");
      },
      later: () => retry("later", { afterMs: 600_000 }),
      held: () => ({ kind: "unknown", code: "reset", error: "cut" }) satisfies Outcome,
    };
    const all = topic<string>("a/all", { sink: (name) => outcomes[name]?.(), onUnknown: "hold" });
    const { mg, of } = await setUp([all]);
    mg.work();
    const ids = new Map<string, string>();
    for (const name of Object.keys(outcomes)) ids.set((await mg.enqueue(all, name)).id, name);
    await until(() => of("attempt").length === ids.size);
    expect(Object.fromEntries(of("attempt").map(({ id, outcome, status }) => [ids.get(id), [outcome, status]]))).toEqual({
      delivered: ["delivered", "delivered"],
      duplicate: ["duplicate", "delivered"],
      rejected: ["reject", "dead"],
      thrown: ["reject", "dead"],
      later: ["retry", "pending"],
      held: ["unknown", "held"],
    });
    await mg.close();
  });

  it("gives the handler what the schema makes of the payload, and rejects a text that no longer fits", async () => {
    const upper: StandardSchemaV1<string, { text: string }> = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: async (value) =>
          value === "bad" ? { issues: [{ message: "bad" }] } : { value: { text: String(value).toUpperCase() } },
      },
    };
    const seen: string[] = [];
    const typed = topic("a/typed", { schema: upper, sink: ({ text }) => void seen.push(text) });
    const { mg, store, of } = await setUp([typed]);
    await mg.enqueue(typed, "hello");
    const { ids } = { ids: await mg.enqueueText([{ topic: "a/typed", payloadText: '"there"' }]) };
    const stored = await store.get(ids[0]?.id ?? "");
    // Written by another process that has no schema.
    await store.enqueue([
      {
        ...stored,
        id: "01900000-0000-7000-8000-000000000001",
        payload: '"bad"',
        payloadHash: "0".repeat(32),
        delayMs: 0,
      } as never,
    ]);
    mg.work();
    await until(() => of("attempt").length === 3);
    expect(new Set(seen)).toEqual(new Set(["HELLO", "THERE"]));
    expect(of("attempt").find(({ outcome }) => outcome === "reject")).toMatchObject({ code: "payload_rejected_by_schema" });
    await mg.close();
  });

  it("asks the sink's probe before an unknown effect is judged", async () => {
    const answers: Outcome[] = [{ kind: "delivered" }, { kind: "retry", code: "absent", error: "not there" }];
    let asked = 0;
    const sink: Sink = {
      kind: "test",
      deliver: (_, { timeoutMs }) => ({ kind: "unknown", code: "reset", error: String(timeoutMs) }),
      probe: async () => answers[asked++] ?? { kind: "unknown", code: "x", error: "x" },
    };
    const probing = topic("a/probing", { sink, retry: { attemptsMax: 2, ...quick } });
    const { mg, of } = await setUp([probing]);
    mg.work();
    await mg.enqueue(probing, 1);
    await until(() => of("attempt").length === 1);
    await mg.enqueue(probing, 2);
    await until(() => of("attempt").length === 3);
    expect(of("attempt").map(({ outcome }) => outcome)).toEqual(["delivered", "retry", "unknown"]);
    await mg.close();
  });

  it("survives a sink that returns nonsense or throws anything", async () => {
    const nonsense = [undefined, null, 7, { kind: "lost" }, { kind: "interrupted" }, {}];
    const sink = { kind: "test", deliver: (d: { payload: string }) => nonsense[Number(d.payload)] } as unknown as Sink;
    const thrower = { kind: "test", deliver: () => Promise.reject(undefined) } as Sink;
    const odd = topic("a/odd", { sink, retry: { attemptsMax: 1 } });
    const worse = topic("a/worse", { sink: thrower, retry: { attemptsMax: 1 } });
    const { mg, count, of } = await setUp([odd, worse]);
    mg.work();
    await mg.enqueueMany(
      odd,
      [0, 1, 2].map((payload) => ({ payload })),
    ); // a few at a time: five failures open the breaker
    await mg.enqueue(worse, 1);
    await until(async () => (await count("dead")) === 4);
    expect(new Set(of("attempt").map(({ code }) => code))).toEqual(new Set(["invalid_outcome", "handler_error"]));
    await mg.close();
  });

  it("delivers what is delayed when it is due, and a hinted message at once", async () => {
    const seen = new Map<string, number>();
    const late = topic<string>("a/late", { sink: (name) => void seen.set(name, performance.now()) });
    // A message that waited for the next look would wait longer than this test may take.
    const { mg } = await setUp([late], { pollMs: 120_000 });
    mg.work();
    await mg.enqueue(late, "warm");
    await until(() => seen.size === 1);
    await pause(150);
    const start = performance.now();
    await mg.enqueue(late, "later", { delayMs: 600 });
    await mg.enqueue(late, "now");
    await until(() => seen.size === 3);
    expect([...seen.keys()]).toEqual(["warm", "now", "later"]);
    expect((seen.get("later") ?? 0) - start).toBeGreaterThanOrEqual(595);
    await mg.close();
  });

  it("goes over HTTP when the topic says so, with the receiver's headers as the contract has them", async () => {
    const requests: { headers: IncomingHttpHeaders; body: string }[] = [];
    const server = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk) => {
        body += String(chunk);
      });
      request.on("end", () => {
        requests.push({ headers: request.headers, body });
        response.end();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/in`;
    const remote = topic("a/remote", { sink: { kind: "http", url } });
    const { mg, count } = await setUp([remote]);
    mg.work();
    const { id } = await mg.enqueue(remote, { n: 1 }, { key: "k-1" });
    await until(async () => (await count("delivered")) === 1);
    expect(requests).toMatchObject([
      {
        body: '{"n":1}',
        headers: {
          "content-type": "application/json",
          "idempotency-key": "k-1",
          "makegood-message-id": id,
          "makegood-topic": "a/remote",
          "makegood-attempt": "1",
        },
      },
    ]);
    await mg.close();
    await new Promise((resolve) => server.close(resolve));
  });

  it("settles a claim's outcomes together, however they were reached", async () => {
    const memory = createMemoryStore();
    const calls: number[] = [];
    const parts: number[] = [];
    const store = wrap(memory, {
      settle: async (settles, at) => {
        calls.push(settles.length);
        const leases = new Map<string, number>();
        for (const { claim } of settles) leases.set(claim.lease, (leases.get(claim.lease) ?? 0) + 1);
        for (const [lease, n] of leases) parts.push(n === sizes.get(lease) ? 0 : 1);
        return memory.settle(settles, at);
      },
      claim: async (request) => {
        const messages = await memory.claim(request);
        for (const { claim } of messages) sizes.set(claim.lease, messages.length);
        return messages;
      },
    });
    const sizes = new Map<string, number>();
    const quickly = topic("a/quickly", { sink: () => undefined });
    const later = topic("a/later", { sink: async () => undefined });
    const { mg, count } = await setUp([quickly, later], { store });
    for (const one of [quickly, later]) {
      for (let i = 0; i < 3; i++)
        await mg.enqueueMany(
          one,
          Array.from({ length: 1_000 }, () => ({ payload: 0 })),
        );
    }
    mg.work();
    await until(async () => (await count("delivered")) === 6_000);
    expect(calls.length).toBeLessThan(120);
    // On a busy machine some are cut by the clock.
    expect(parts.filter((part) => part === 1).length).toBeLessThan(parts.length / 2);
    await mg.close();
  });

  it("delivers tens of thousands, each exactly once when nothing fails", async () => {
    const seen = new Map<number, number>();
    const many = topic<number>("a/many", { sink: (n) => void seen.set(n, (seen.get(n) ?? 0) + 1) });
    const { mg, count } = await setUp([many]);
    for (let i = 0; i < 20_000; i += 1_000) {
      await mg.enqueueMany(
        many,
        Array.from({ length: 1_000 }, (_, j) => ({ payload: i + j })),
      );
    }
    mg.work();
    mg.work();
    await until(async () => (await count("delivered")) === 20_000, 20_000);
    expect([...seen.values()].every((times) => times === 1)).toBe(true);
    expect(seen.size).toBe(20_000);
    await mg.close();
  });
});
