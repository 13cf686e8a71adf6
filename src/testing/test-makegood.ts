/**
 * A whole Makegood for unit tests, on a store with faked transactions and a clock to move, and what tests ask of it: run what can run now, and what
 * was enqueued. It delivers with the real code; only the database and the time are not real.
 */
import type { ShownMessage } from "../client/standing.ts";
import { createMakegood, type Makegood, type MakegoodOptions } from "../create.ts";
import type { TopicName } from "../message/topic.ts";
import type { MakegoodEvent } from "../observe/events.ts";
import { systemClock } from "../platform/clock.ts";
import type { TopicFor } from "../topic/topic.ts";
import { createTestClock, type TestClock } from "./test-clock.ts";
import { createTestStore, type TestStore } from "./test-store.ts";

export interface TestMakegoodOptions extends Omit<MakegoodOptions, "store" | "clock"> {
  readonly clock?: TestClock | undefined;
}

export interface TestMakegood extends AsyncDisposable {
  readonly mg: Makegood;
  readonly store: TestStore;
  readonly clock: TestClock;
  /** As `drain(mg)`. */
  drain(options?: DrainOptions): Promise<Attempted[]>;
}

/** Silent and without a recovery engine unless said. */
export async function createTestMakegood(options: TestMakegoodOptions = {}): Promise<TestMakegood> {
  const { clock = createTestClock() } = options;
  const store = createTestStore({ clock, random: options.random });
  const mg = await createMakegood({ log: "silent", recovery: false, ...options, store, clock });
  return { mg, store, clock, drain: (how) => drain(mg, how), [Symbol.asyncDispose]: () => mg.close() };
}

/** One attempt that was made. */
export type Attempted = Omit<Extract<MakegoodEvent, { type: "attempt" }>, "type" | "ms" | "alert">;

export interface DrainOptions {
  readonly topics?: readonly string[] | undefined;
  /** In real time; 5 s unless said. */
  readonly timeoutMs?: number | undefined;
}

const TIMEOUT_MS = 5_000;

/** Attempts until nothing more can be attempted now, and says what it attempted, in order. What is due later waits for the clock. */
export async function drain(mg: Makegood, { topics, timeoutMs = TIMEOUT_MS }: DrainOptions = {}): Promise<Attempted[]> {
  const attempted: Attempted[] = [];
  const forget = mg.events.on((event) => {
    if (event.type !== "attempt") return;
    const { type: _, ms: __, alert: ___, ...one } = event;
    attempted.push(one);
  });
  const startMs = systemClock.monotonicMs();
  try {
    const { error } = await mg.workOff({ topics, timeoutMs, maintenance: false });
    if (error !== null) throw error;
  } finally {
    forget();
  }
  if (systemClock.monotonicMs() - startMs < timeoutMs) return attempted;
  throw new Error(
    `drain: after ${timeoutMs} ms something is still due or being attempted. A handler that does not end, or a rate per second: move the clock on`,
  );
}

/** A message as it was accepted, its payload as a value. */
export type EnqueuedMessage<In = unknown> = Omit<ShownMessage, "payload"> & { readonly payload: In };

/** What was accepted of a topic and stands in the store, the first one first. */
export async function enqueued<In = unknown>(mg: Makegood, topic: TopicFor<In> | TopicName): Promise<EnqueuedMessage<In>[]> {
  const found: EnqueuedMessage<In>[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await mg.list({ topic, limit: 1_000, cursor });
    found.push(...page.data.map((message) => ({ ...message, payload: JSON.parse(message.payload) as In })));
    if (page.nextCursor === null) return found.reverse();
    cursor = page.nextCursor;
  }
}
