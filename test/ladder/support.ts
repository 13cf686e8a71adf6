/** Shared by the ladder tests: a Makegood on a real receiver, with stores that can be taken away. */

import type { MakegoodOptions } from "../../src/create.ts";
import { createMakegood, createMemoryStore, type MakegoodEvent, topic } from "../../src/index.ts";
import { MakegoodError } from "../../src/message/errors.ts";
import type { Store } from "../../src/store/store.ts";
import type { TopicOptions } from "../../src/topic/topic.ts";

export const TOPIC = "test/ladder";

export interface Fragile {
  readonly store: Store;
  /** `refuses`: fails at once. `hangs`: does not answer. `late`: commits, and its answer is lost. */
  mode: "up" | "refuses" | "hangs" | "late";
}

/** A store that can be taken away; what it holds stays. `durable`: says so, as a real one would. */
export function fragile(durable = true, inner: Store = createMemoryStore()): Fragile {
  const state = { mode: "up" } as { mode: Fragile["mode"] };
  const traits = durable ? { ...inner.traits, name: "fragile", survives: "power-loss" as const } : inner.traits;
  const guarded = (target: object, skip: readonly string[]): object =>
    new Proxy(target, {
      get(of, name) {
        const member: unknown = Reflect.get(of, name);
        if (typeof member !== "function" || skip.includes(String(name))) return member;
        return async (...args: unknown[]) => {
          if (state.mode === "refuses") throw new MakegoodError("store_unavailable", "the store is away");
          if (state.mode === "hangs") return new Promise(() => {});
          const result: unknown = await (member as (...args: unknown[]) => unknown).apply(of, args);
          if (state.mode === "late") throw new MakegoodError("outcome_unknown", "the answer was lost");
          return result;
        };
      },
    });
  const topics = guarded(inner.topics, []) as Store["topics"];
  const store = guarded({ ...inner, traits, topics }, ["wake", "close", "topics"]) as Store;
  return {
    store,
    get mode() {
      return state.mode;
    },
    set mode(mode) {
      state.mode = mode;
    },
  };
}

export interface LadderOptions extends Partial<Omit<MakegoodOptions, "topics">> {
  readonly url: string;
  readonly topic?: TopicOptions;
}

export async function ladderScene({ url, topic: how = {}, ...options }: LadderOptions) {
  const events: MakegoodEvent[] = [];
  const lines: string[] = [];
  const sink = { kind: "http" as const, url };
  const mg = await createMakegood({
    store: createMemoryStore(),
    errorLog: (line) => lines.push(line),
    pollMs: 20,
    ...options,
    topics: [topic(TOPIC, { sink, timeoutMs: 2_000, retry: { attemptsMax: 5, baseMs: 20, maxMs: 100 }, ...how })],
    onEvent: (event) => events.push(event),
  });
  const of = <T extends MakegoodEvent["type"]>(type: T) =>
    events.filter((event): event is Extract<MakegoodEvent, { type: T }> => event.type === type);
  return { mg, events, lines, of };
}
