/**
 * deliver() against a real receiver: every status of the taxonomy, every way a connection can fail, and what the result says about
 * where the message is now. It never throws.
 */
import { performance } from "node:perf_hooks";
import { describe, expect, it } from "vitest";
import { createMemoryStore, type Outcome } from "../../src/index.ts";
import { readJournal } from "../../src/store/journal/read-journal.ts";
import { freshDirectory } from "../journal/support.ts";
import { startReceiver } from "../support/receiver.ts";
import { fastClock } from "../unit/delivery/support.ts";
import { fragile, ladderScene, TOPIC } from "./support.ts";

const QUEUED = [401, 403, 408, 409, 425, 429, 500, 502, 503, 504, 507];
const DEAD = [301, 302, 400, 404, 405, 410, 413, 422];

describe("the receiver's answer", () => {
  it.each([200, 201, 202, 204])("%i: delivered, and nothing is stored", async (status) => {
    await using receiver = await startReceiver({ status });
    const { mg } = await ladderScene({ url: receiver.url });
    const result = await mg.deliver(TOPIC, { n: 1 }, { key: "k" });
    expect(result).toMatchObject({ kind: "delivered", key: "k", code: null, stored: null, survives: "nothing", tries: 1 });
    expect(receiver.arrivals).toHaveLength(1);
    expect(receiver.arrivals[0]).toMatchObject({ key: "k", id: result.id, body: '{"n":1}', attempt: 0 });
    expect(await mg.store.counts({ delivered: true })).toEqual([]);
    await mg.close();
  });

  it.each(QUEUED)("%i: one try, then queued in the primary store, handed down", async (status) => {
    await using receiver = await startReceiver({ status });
    const { mg } = await ladderScene({ url: receiver.url, store: fragile().store });
    const result = await mg.deliver(TOPIC, { n: 1 }, { key: "k" });
    expect(result).toMatchObject({ kind: "queued", key: "k", code: `http_${status}`, status, stored: "primary", tries: 1 });
    expect(result.survives).toBe("power-loss");
    const { attempts } = await mg.store.history(result.id);
    expect(attempts).toMatchObject([{ attempt: 0, counted: false, code: `http_${status}` }]);
    expect(receiver.arrivals).toHaveLength(1);
    await mg.close();
  });

  it.each(DEAD)("DF-19: %i: rejected for good: a dead letter at once, never tried again", async (status) => {
    await using receiver = await startReceiver({ status });
    const { mg } = await ladderScene({ url: receiver.url });
    const result = await mg.deliver(TOPIC, { n: 1 });
    expect(result).toMatchObject({ kind: "dead", code: `http_${status}`, status, stored: "primary", tries: 1, key: result.id });
    expect(await mg.store.get(result.id)).toMatchObject({
      status: "dead",
      resolution: "open",
      attempts: 0,
      lastCode: `http_${status}`,
    });
    expect(receiver.arrivals).toHaveLength(1);
    await mg.close();
  });

  it("a statusMap's duplicate is a duplicate, and nothing is stored", async () => {
    await using receiver = await startReceiver({ status: 409 });
    const topic = { sink: { kind: "http", url: receiver.url, statusMap: { "409": "duplicate" } } } as const;
    const { mg } = await ladderScene({ url: receiver.url, topic });
    expect(await mg.deliver(TOPIC, 1)).toMatchObject({ kind: "duplicate", stored: null, tries: 1 });
    await mg.close();
  });

  it("a worker goes on with what was handed down, with the same key and bytes: one effect", async () => {
    await using receiver = await startReceiver();
    const { mg } = await ladderScene({ url: receiver.url });
    receiver.script("k", [{ status: 503 }, { status: 503 }]);
    const result = await mg.deliver(TOPIC, { n: 1 }, { key: "k" });
    expect(result.kind).toBe("queued");
    mg.work();
    await expect.poll(async () => (await mg.store.get(result.id))?.status, { timeout: 5_000 }).toBe("delivered");
    expect(receiver.arrivals.map(({ key, body, attempt }) => [key, body, attempt])).toEqual(
      [0, 1, 2].map((n) => ["k", '{"n":1}', n]),
    );
    expect(receiver.effects.size).toBe(1);
    await mg.close();
  });

  it("Retry-After is honoured by what is handed down", async () => {
    await using receiver = await startReceiver({ status: 503, headers: { "retry-after": "120" } });
    const { mg } = await ladderScene({ url: receiver.url });
    const { id } = await mg.deliver(TOPIC, 1);
    const view = await mg.store.get(id);
    expect((view?.nextAttemptAt?.getTime() ?? 0) - (view?.createdAt.getTime() ?? 0)).toBeGreaterThanOrEqual(120_000);
    await mg.close();
  });

  it("FIN-37: a first failure waits the policy's first step before attempt 1", async () => {
    await using receiver = await startReceiver({ status: 500 });
    const { mg } = await ladderScene({ url: receiver.url, topic: { retry: { policy: "settlement", jitter: "none" } } });
    const { id } = await mg.deliver(TOPIC, 1);
    const view = await mg.store.get(id);
    expect((view?.nextAttemptAt?.getTime() ?? 0) - (view?.createdAt.getTime() ?? 0)).toBe(60_000);
    await mg.close();
  });
});

describe("CON-15, CON-42: inline tries", () => {
  // Ten times slower: the 300 ms of the extra tries are three seconds, so that a busy machine does not decide how many fit in.
  const slow = () => fastClock(0.1);

  it("a connection that breaks under the request is tried at most twice more, with one key", async () => {
    await using receiver = await startReceiver("reset");
    const { mg, of } = await ladderScene({ url: receiver.url, clock: slow() });
    const result = await mg.deliver(TOPIC, 1, { key: "k" });
    expect(result).toMatchObject({ kind: "queued", tries: 3, code: "connection_reset" });
    expect(receiver.of("k")).toHaveLength(3);
    expect(of("direct")).toMatchObject([{ tries: 3, outcome: "unknown" }]);
    await mg.close();
  });

  it("the second try may succeed, and an idempotent receiver saw one effect", async () => {
    await using receiver = await startReceiver();
    receiver.script("k", ["reset"]);
    const { mg } = await ladderScene({ url: receiver.url, clock: slow() });
    expect(await mg.deliver(TOPIC, 1, { key: "k" })).toMatchObject({ kind: "delivered", tries: 2 });
    expect([receiver.of("k").length, receiver.effects.size]).toEqual([2, 1]);
    await mg.close();
  });

  it("a refused connection goes straight down", async () => {
    const receiver = await startReceiver();
    const { mg } = await ladderScene({ url: receiver.url });
    await receiver.down();
    expect(await mg.deliver(TOPIC, 1)).toMatchObject({ kind: "queued", code: "connection_refused", tries: 1, stored: "primary" });
    await mg.close();
  });

  it("a receiver that hangs costs the given timeout once and no more tries", async () => {
    await using receiver = await startReceiver("hang");
    const { mg } = await ladderScene({ url: receiver.url });
    expect(await mg.deliver(TOPIC, 1, { timeoutMs: 100 })).toMatchObject({ kind: "queued", code: "timeout", tries: 1 });
    await mg.close();
  });

  it("the extra tries add 300 ms at most, also when they hang", async () => {
    await using receiver = await startReceiver();
    receiver.script("k", ["reset", "hang", "hang"]);
    const { mg, of } = await ladderScene({ url: receiver.url, clock: slow() });
    const result = await mg.deliver(TOPIC, 1, { key: "k" });
    expect(result).toMatchObject({ kind: "queued", code: "connection_reset", tries: 3 });
    // By that clock; far from the 2 s that one more try with the whole timeout would take.
    expect(of("direct")[0]?.ms).toBeLessThan(1_000);
    await mg.close();
  });

  it("an open breaker goes straight down without a try, and a paused topic too", async () => {
    await using receiver = await startReceiver({ status: 500 });
    const { mg } = await ladderScene({ url: receiver.url });
    for (let n = 0; n < 5; n++) await mg.deliver(TOPIC, n);
    await expect.poll(async () => (await mg.store.topics.get(TOPIC))?.breaker.state).toBe("open");
    const before = receiver.arrivals.length;
    expect(await mg.deliver(TOPIC, 6)).toMatchObject({ kind: "queued", code: "breaker_open", tries: 0, stored: "primary" });
    expect(receiver.arrivals).toHaveLength(before);
    await mg.store.topics.reset(TOPIC);
    await mg.store.topics.pause(TOPIC, true);
    await expect.poll(async () => (await mg.deliver(TOPIC, 7)).code).toBe("topic_paused");
    await mg.close();
  });
});

describe("what is not tried at once", () => {
  it("a delay and an ordering key wait in the store: a direct try would overtake", async () => {
    await using receiver = await startReceiver();
    const { mg } = await ladderScene({ url: receiver.url });
    expect(await mg.deliver(TOPIC, 1, { delayMs: 60_000 })).toMatchObject({ kind: "queued", code: "delayed", tries: 0 });
    expect(await mg.deliver(TOPIC, 1, { orderingKey: "a" })).toMatchObject({ kind: "queued", code: "ordered", tries: 0 });
    expect(receiver.arrivals).toEqual([]);
    await mg.close();
  });

  it("an aborted signal ends the try; the message is stored all the same", async () => {
    await using receiver = await startReceiver("hang");
    const { mg } = await ladderScene({ url: receiver.url });
    const controller = new AbortController();
    const delivering = mg.deliver(TOPIC, 1, { signal: controller.signal });
    await expect.poll(() => receiver.arrivals.length).toBe(1);
    controller.abort();
    expect(await delivering).toMatchObject({ kind: "queued", code: "aborted", stored: "primary" });
    expect(await mg.deliver(TOPIC, 1, { signal: controller.signal })).toMatchObject({
      kind: "queued",
      code: "aborted",
      tries: 0,
    });
    await mg.close();
  });
});

describe("storeFirst", () => {
  it("is committed before the sink is tried, and the try is its first attempt", async () => {
    const store = createMemoryStore();
    const seen: (string | undefined)[] = [];
    await using receiver = await startReceiver();
    const sink = {
      kind: "own",
      deliver: async ({ id }: { id: string }): Promise<Outcome> => {
        seen.push((await store.get(id))?.status);
        return { kind: "delivered", status: 201, body: "made" };
      },
    };
    const { mg } = await ladderScene({ url: receiver.url, store, topic: { sink } });
    const result = await mg.deliver(TOPIC, 1, { storeFirst: true });
    expect(result).toMatchObject({ kind: "delivered", status: 201, body: "made", stored: "primary", tries: 1 });
    expect(seen).toEqual(["processing"]);
    expect(await store.get(result.id)).toMatchObject({ status: "delivered", attempts: 1 });
    await mg.close();
  });

  it.each([
    [503, "queued", "pending"],
    [422, "dead", "dead"],
  ])("%i: %s, settled under its claim", async (status, kind, state) => {
    await using receiver = await startReceiver({ status });
    const { mg } = await ladderScene({ url: receiver.url });
    const result = await mg.deliver(TOPIC, 1, { storeFirst: true });
    expect(result).toMatchObject({ kind, status, stored: "primary", tries: 1 });
    expect(await mg.store.get(result.id)).toMatchObject({ status: state, attempts: 1, lastCode: `http_${status}` });
    await mg.close();
  });

  it("workers never take it while the direct try runs", async () => {
    await using receiver = await startReceiver({ status: 200, afterMs: 150 });
    const { mg } = await ladderScene({ url: receiver.url });
    mg.work();
    const results = await Promise.all(Array.from({ length: 10 }, (_, n) => mg.deliver(TOPIC, n, { storeFirst: true })));
    expect(results.every(({ kind }) => kind === "delivered")).toBe(true);
    expect(receiver.arrivals).toHaveLength(10);
    await mg.close();
  });

  it("an unknown outcome of a topic that holds them is held, never retried", async () => {
    await using receiver = await startReceiver("hang");
    const { mg } = await ladderScene({ url: receiver.url, topic: { onUnknown: "hold" } });
    const result = await mg.deliver(TOPIC, 1, { timeoutMs: 100 });
    expect(result).toMatchObject({ kind: "queued", code: "timeout", stored: "primary" });
    expect(await mg.store.get(result.id)).toMatchObject({ status: "pending", heldReason: "outcome_unknown" });
    await mg.close();
  });

  it("a repeat says what became of the first", async () => {
    await using receiver = await startReceiver();
    const { mg } = await ladderScene({ url: receiver.url });
    const first = await mg.deliver(TOPIC, 1, { key: "k", storeFirst: true });
    const second = await mg.deliver(TOPIC, 1, { key: "k", storeFirst: true });
    expect(second).toMatchObject({ kind: "duplicate", id: first.id, stored: "primary", tries: 0 });
    expect(receiver.arrivals).toHaveLength(1);
    await mg.close();
  });
});

describe("it never throws", () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  it.each([
    ["a circular payload", circular, {}, "invalid_payload"],
    ["a BigInt", { amount: 12n }, {}, "invalid_payload"],
    ["nothing", undefined, {}, "invalid_payload"],
    ["a payload that is too large", "x".repeat(1_100_000), {}, "payload_too_large"],
    ["a bad key", 1, { key: "a\u0000b" }, "invalid_message"],
    ["a long key", 1, { key: "k".repeat(300) }, "key_too_long"],
    ["a bad id", 1, { id: "7" }, "invalid_message"],
    ["a negative delay", 1, { delayMs: -1 }, "invalid_message"],
  ])("%s is refused, and its whole text goes to the ERROR log", async (_, payload, options, code) => {
    const { mg, lines } = await ladderScene({ url: "http://127.0.0.1:4999/" });
    const result = await mg.deliver(TOPIC, payload, options);
    expect(result).toMatchObject({ kind: "refused", code, stored: null, survives: "nothing", tries: 0 });
    expect(lines).toHaveLength(1);
    const line = JSON.parse(lines[0] as string);
    expect(line).toMatchObject({ level: "error", makegood_refused: { topic: TOPIC, code } });
    if (typeof payload === "string") expect(line.makegood_refused.text).toContain(payload);
    await mg.close();
  });

  it("an unknown topic, nonsense options and a closed Makegood are results, too", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const { mg, lines } = await ladderScene({ url: receiver.url });
    expect(await mg.deliver("test/nobody", 1)).toMatchObject({ kind: "refused", code: "unknown_topic" });
    expect(await mg.deliver(null as never, 1)).toMatchObject({ kind: "refused" });
    expect(await mg.deliver(TOPIC, 1, null as never)).toMatchObject({ kind: "queued", stored: "primary" });
    const odd = { timeoutMs: Number.NaN, budgetMs: -5 };
    expect(await mg.deliver(TOPIC, 1, odd)).toMatchObject({ kind: "queued", stored: "primary" });
    await mg.close();
    expect(await mg.deliver(TOPIC, 1)).toMatchObject({ kind: "refused", code: "closed" });
    expect(lines).toHaveLength(3);
  });

  it("I8: a text that is given keeps its bytes, also while nobody can be asked about the topic", async () => {
    const primary = fragile();
    const directory = await freshDirectory();
    const { mg } = await ladderScene({ url: "http://127.0.0.1:4999/", store: primary.store, journal: { directory } });
    primary.mode = "refuses";
    const payloadText = '{"big": 12345678901234567890, "a":1,"a":2}';
    const result = await mg.deliver("test/declared-elsewhere", undefined, { payloadText });
    expect(result).toMatchObject({ kind: "queued", code: "topic_not_known_here", stored: "journal" });
    expect((await readJournal({ directory })).entries[0]?.entry?.message.payload).toBe(payloadText);
    primary.mode = "up";
    await mg.close();
  });

  it("DF-17: the same key with another payload is refused and kept in the log; the first stands", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const { mg, lines, of } = await ladderScene({ url: receiver.url });
    const first = await mg.deliver(TOPIC, { cost: 1 }, { key: "k" });
    const second = await mg.deliver(TOPIC, { cost: 2 }, { key: "k" });
    expect(second).toMatchObject({ kind: "refused", code: "key_conflict", stored: null, key: "k" });
    expect(JSON.parse(lines[0] as string).makegood_refused).toMatchObject({ key: "k", text: '{"cost":2}' });
    expect(of("quarantined")).toMatchObject([{ key: "k" }]);
    expect((await mg.store.get(first.id))?.payload).toBe('{"cost":1}');
    await mg.close();
  });

  it("budgetMs covers every rung, whatever hangs", async () => {
    await using receiver = await startReceiver("hang");
    const primary = fragile();
    const secondary = fragile();
    const { mg, lines } = await ladderScene({ url: receiver.url, store: primary.store, secondary: secondary.store });
    primary.mode = "hangs";
    secondary.mode = "hangs";
    const startedMs = performance.now();
    const result = await mg.deliver(TOPIC, 1, { timeoutMs: 5_000, budgetMs: 600 });
    // Not a measure of speed: either of the two that hang would alone take for ever, the receiver five seconds.
    expect(performance.now() - startedMs).toBeLessThan(3_000);
    expect(result).toMatchObject({ kind: "queued", stored: "memory", survives: "nothing" });
    expect(lines).toHaveLength(1);
    primary.mode = "up";
    secondary.mode = "up";
    await mg.close();
  });
});
