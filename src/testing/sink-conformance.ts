/**
 * What any sink must do, as a list of cases for any test runner: exact bytes, one key over all attempts, an outcome and
 * never a throw, and no waiting past the deadline. Give it a sink with a receiver behind it; each case opens a fresh rig.
 *
 *     for (const { name, run } of sinkConformance("my sink", harness)) it(name, run);
 */
import assert from "node:assert/strict";
import type { Outcome } from "../message/outcome.ts";
import { type Clock, sleep, systemClock } from "../platform/clock.ts";
import { createIds } from "../platform/ids.ts";
import type { DeliverContext, Delivery, Sink } from "../sink/sink.ts";

/** `accept`: take the message. `hang`: take it and never answer. `break`: fail in the ugliest way there is. */
export type ReceiverMode = "accept" | "hang" | "break";

export interface Received {
  readonly body: string | Uint8Array;
  /** Null where this kind of receiver cannot see it. */
  readonly idempotencyKey: string | null;
}

export interface SinkRig {
  readonly sink: Sink;
  /** How the receiver treats what comes from now on. It starts with `accept`. */
  behave(mode: ReceiverMode): void;
  /** Everything that arrived so far, in order of arrival. */
  received(): readonly Received[];
  close(): Promise<void>;
}

export interface SinkHarness {
  open(): Promise<SinkRig>;
  /** The modes that this receiver can play; all of them if absent. */
  readonly modes?: readonly ReceiverMode[] | undefined;
  /** What should arrive for a delivery; its payload if absent. */
  readonly bodyOf?: ((delivery: Delivery) => string) | undefined;
  /** What should arrive as the key; the idempotency key itself if absent. */
  readonly keyOf?: ((delivery: Delivery) => string) | undefined;
}

export interface SinkCase {
  readonly name: string;
  run(): Promise<void>;
}

const TIMEOUT_MS = 5_000;
const DEADLINE_MS = 200;
/** What a busy machine may add to a deadline before it counts as not kept. */
const SLACK_MS = 1_500;

/** Payloads that a careless round trip through a parser or a decoder changes. */
const PAYLOADS: readonly string[] = [
  "{}",
  "null",
  '{ "spaces" :  "stay" }',
  '{"big":12345678901234567890,"float":1.0,"exp":1E400,"dup":1,"dup":2}',
  '{"text_":"\\u0000 \\ud800 \\n é 漢字 😀 \u2028","slash":"\\/"}',
  `{"long":"${"x".repeat(70_000)}"}`,
];

const nextId = createIds();

/** A delivery for tests; every field can be set. */
export function testDelivery(over: Partial<Delivery> = {}): Delivery {
  const id = over.id ?? nextId();
  return {
    id,
    topic: "test/conformance",
    tenantId: null,
    key: null,
    idempotencyKey: over.key ?? id,
    payload: "{}",
    attempt: 1,
    traceparent: null,
    schemaVersion: null,
    ...over,
  };
}

export type TestContext = DeliverContext & Disposable & { abort(): void };

/** A context as a worker makes it, with the listener that costs no signal. */
function listenedContext(): TestContext {
  const context = testContext();
  return {
    ...context,
    onAbort(listener) {
      if (context.signal.aborted) listener(context.signal.reason);
      else context.signal.addEventListener("abort", () => listener(context.signal.reason), { once: true });
    },
  };
}

/** A context with nothing but a signal: it aborts at the deadline, or earlier by `abort()`. */
export function testContext(timeoutMs: number = TIMEOUT_MS, clock: Clock = systemClock): TestContext {
  const controller = new AbortController();
  const timer = clock.after(timeoutMs, () => controller.abort(new DOMException("the deadline passed", "TimeoutError")));
  return {
    signal: controller.signal,
    timeoutMs,
    abort: () => controller.abort(),
    [Symbol.dispose]: () => timer.cancel(),
  };
}

export function sinkConformance(name: string, harness: SinkHarness): SinkCase[] {
  const modes = harness.modes ?? ["accept", "hang", "break"];
  const bodyOf = harness.bodyOf ?? ((delivery: Delivery) => delivery.payload);
  const keyOf = harness.keyOf ?? ((delivery: Delivery) => delivery.idempotencyKey);
  const inRig = (what: string, needs: ReceiverMode, run: (rig: SinkRig) => Promise<void>): SinkCase[] => {
    if (!modes.includes(needs)) return [];
    return [{ name: `${name}: ${what}`, run: () => withRig(harness, run) }];
  };

  return [
    ...inRig("delivers the exact bytes of any payload", "accept", (rig) => exactBytes(rig, bodyOf)),
    ...inRig("sends the same key in every attempt", "accept", (rig) => sameKey(rig, keyOf)),
    ...inRig("does not mix concurrent deliveries", "accept", (rig) => notMixed(rig, bodyOf, keyOf)),
    ...inRig("keeps the deadline when the receiver never answers", "hang", keepsDeadline),
    ...inRig("settles promptly when the attempt is aborted", "hang", (rig) => settlesOnAbort(rig, testContext())),
    ...inRig("settles promptly when its listener is told to abort", "hang", (rig) => settlesOnAbort(rig, listenedContext())),
    ...inRig("answers with an outcome when the attempt was aborted before it began", "accept", (rig) =>
      abortedBefore(rig, testContext()),
    ),
    ...inRig("answers with an outcome when its listener is told at once", "accept", (rig) =>
      abortedBefore(rig, listenedContext()),
    ),
    ...inRig("answers a broken receiver with an outcome, never with a throw", "break", brokenReceiver),
    ...inRig("delivers again as soon as the receiver is well", "break", recovers),
    ...inRig("can be closed, and closed again", "accept", closesTwice),
  ];
}

async function withRig(harness: SinkHarness, run: (rig: SinkRig) => Promise<void>): Promise<void> {
  const rig = await harness.open();
  try {
    await run(rig);
  } finally {
    await rig.close();
  }
}

async function attempt(sink: Sink, delivery: Delivery, timeoutMs?: number): Promise<Outcome> {
  const context = testContext(timeoutMs);
  try {
    const outcome = await sink.deliver(delivery, context);
    assertOutcome(outcome);
    return outcome;
  } finally {
    context[Symbol.dispose]();
  }
}

async function exactBytes(rig: SinkRig, bodyOf: (delivery: Delivery) => string): Promise<void> {
  for (const [at, payload] of PAYLOADS.entries()) {
    const delivery = testDelivery({ payload });
    assert.equal((await attempt(rig.sink, delivery)).kind, "delivered");
    const arrived = rig.received();
    assert.equal(arrived.length, at + 1, "one delivery arrives once");
    assert.deepEqual(bytesOf(arrived[at]?.body), bytesOf(bodyOf(delivery)));
  }
}

async function sameKey(rig: SinkRig, keyOf: (delivery: Delivery) => string): Promise<void> {
  const first = testDelivery({ key: "order-17/charge", idempotencyKey: "order-17/charge" });
  for (const number of [1, 2, 3]) await attempt(rig.sink, { ...first, attempt: number });
  const keys = rig.received().map((received) => received.idempotencyKey);
  assert.equal(keys.length, 3);
  for (const key of keys) if (key !== null) assert.equal(key, keyOf(first));
}

async function notMixed(
  rig: SinkRig,
  bodyOf: (delivery: Delivery) => string,
  keyOf: (delivery: Delivery) => string,
): Promise<void> {
  const deliveries = Array.from({ length: 60 }, (_, n) => {
    const key = `key-${n}`;
    return testDelivery({ key, idempotencyKey: key, payload: JSON.stringify({ n, pad: "p".repeat(n * 50) }) });
  });
  const outcomes = await Promise.all(deliveries.map((delivery) => attempt(rig.sink, delivery)));
  for (const outcome of outcomes) assert.equal(outcome.kind, "delivered");
  const received = rig.received();
  assert.equal(received.length, deliveries.length, "each delivery arrives once");
  for (const delivery of deliveries) {
    const body = bodyOf(delivery);
    const found = received.filter((one) => bytesOf(one.body).toString() === body);
    assert.equal(found.length, 1, "each body arrives whole and once");
    const key = found[0]?.idempotencyKey ?? null;
    if (key !== null) assert.equal(key, keyOf(delivery), "a body arrives under its own key");
  }
}

async function keepsDeadline(rig: SinkRig): Promise<void> {
  rig.behave("hang");
  const startedMs = systemClock.monotonicMs();
  const outcome = await attempt(rig.sink, testDelivery(), DEADLINE_MS);
  const tookMs = systemClock.monotonicMs() - startedMs;
  assert.ok(tookMs < DEADLINE_MS + SLACK_MS, `took ${Math.round(tookMs)} ms for a deadline of ${DEADLINE_MS} ms`);
  assertFailed(outcome, ["unknown", "retry"]);
}

async function settlesOnAbort(rig: SinkRig, context: TestContext): Promise<void> {
  rig.behave("hang");
  const pending = Promise.resolve(rig.sink.deliver(testDelivery(), context));
  await sleep(systemClock, 100);
  const startedMs = systemClock.monotonicMs();
  context.abort();
  const outcome = await pending;
  context[Symbol.dispose]();
  assert.ok(systemClock.monotonicMs() - startedMs < SLACK_MS, "an aborted attempt must not wait for its receiver");
  assertFailed(outcome, ["unknown", "retry"]);
}

async function abortedBefore(rig: SinkRig, context: TestContext): Promise<void> {
  context.abort();
  const outcome = await rig.sink.deliver(testDelivery(), context);
  context[Symbol.dispose]();
  assertOutcome(outcome);
  // A sink that says that nothing was sent must have sent nothing.
  if (outcome.kind === "retry") assert.equal(rig.received().length, 0);
}

async function brokenReceiver(rig: SinkRig): Promise<void> {
  rig.behave("break");
  for (let n = 0; n < 5; n++) assertFailed(await attempt(rig.sink, testDelivery()), ["retry", "unknown", "reject"]);
}

async function recovers(rig: SinkRig): Promise<void> {
  rig.behave("break");
  await Promise.all([1, 2, 3].map(() => attempt(rig.sink, testDelivery())));
  rig.behave("accept");
  assert.equal((await attempt(rig.sink, testDelivery())).kind, "delivered");
}

async function closesTwice(rig: SinkRig): Promise<void> {
  await attempt(rig.sink, testDelivery());
  await rig.sink.close?.();
  await rig.sink.close?.();
  await attempt(rig.sink, testDelivery());
}

/** Fails unless the value is an outcome that a sink may give, whole. */
export function assertOutcome(outcome: Outcome): void {
  const kinds: readonly string[] = ["delivered", "duplicate", "retry", "reject", "unknown", "disable", "unserved"];
  assert.ok(kinds.includes(outcome.kind), `${outcome.kind} is not for a sink to say`);
  if ("code" in outcome) {
    assert.match(outcome.code, /^[a-z0-9_]{1,100}$/, "a code is a short stable word");
    assert.ok(outcome.error.length > 0, "a failure says why");
  }
}

function assertFailed(outcome: Outcome, kinds: readonly string[]): void {
  assertOutcome(outcome);
  assert.ok(kinds.includes(outcome.kind), `expected ${kinds.join(" or ")}, got ${outcome.kind}`);
}

function bytesOf(body: string | Uint8Array | undefined): Buffer {
  return body === undefined ? Buffer.alloc(0) : Buffer.from(body as Uint8Array);
}
