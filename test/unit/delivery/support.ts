/** Shared by the delivery tests: a clock that runs faster, stores that misbehave, and waiting for a condition. */
import { expect } from "vitest";
import type { MakegoodOptions } from "../../../src/create.ts";
import { type AnyTopic, createMakegood, createMemoryStore, type MakegoodEvent } from "../../../src/index.ts";
import { type Clock, systemClock } from "../../../src/platform/clock.ts";
import type { Store } from "../../../src/store/store.ts";

/** Time runs `factor` times faster, for waits and for the store alike. */
export function fastClock(factor: number): Clock {
  const wall = systemClock.wallMs();
  const start = systemClock.monotonicMs();
  return {
    wallMs: () => Math.floor(wall + (systemClock.monotonicMs() - start) * factor),
    monotonicMs: () => (systemClock.monotonicMs() - start) * factor,
    after: (ms, run, background) => systemClock.after(ms / factor, run, background),
  };
}

/** The same store with some of its methods replaced. */
export function wrap(store: Store, methods: Partial<Store>): Store {
  return Object.assign(Object.create(store) as Store, methods);
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function until(what: () => boolean | Promise<boolean>, ms = 20_000): Promise<void> {
  const end = performance.now() + ms;
  while (!(await what())) {
    if (performance.now() > end) expect.fail(`not within ${ms} ms: ${what.toString()}`);
    await pause(2);
  }
}

export async function setUp(topics: AnyTopic[], options: Partial<MakegoodOptions> = {}) {
  const events: MakegoodEvent[] = [];
  const clock = options.clock ?? systemClock;
  const store = options.store ?? createMemoryStore({ clock });
  // These tests count messages and sinks: those of the recovery engine would be among them.
  const mg = await createMakegood({ recovery: false, ...options, store, clock, topics, onEvent: (event) => events.push(event) });
  const count = async (status: string): Promise<number> => {
    const counts = await store.counts({ delivered: true });
    return counts.filter((row) => row.status === status).reduce((sum, row) => sum + row.count, 0);
  };
  const of = <T extends MakegoodEvent["type"]>(type: T) =>
    events.filter((event): event is Extract<MakegoodEvent, { type: T }> => event.type === type);
  return { mg, store, events, count, of, clock };
}
