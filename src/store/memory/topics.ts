/**
 * The topics seam in memory: definitions, pause, disabled sinks and breakers. A breaker is open until its cool-down has
 * passed, then one owner at a time may probe it.
 */
import type { BreakerState, TopicDefinition, TopicRecord, TopicSource } from "../../message/topic.ts";
import type { At } from "../store.ts";
import type { TopicDelete, TopicStore } from "../topics.ts";
import { hint, nowMs, type State, type TopicState } from "./state.ts";

/** `alive` throws when the store is closed. */
export function createTopics(state: State, alive: () => void): TopicStore {
  const on =
    <A extends unknown[], T>(call: (state: State, ...args: A) => T) =>
    async (...args: A): Promise<T> => {
      alive();
      return call(state, ...args);
    };
  return {
    put: on(put),
    get: on((_, name, at) => record(state, state.topics.get(name), at)),
    list: on((_, at) => [...state.topics.values()].map((topic) => record(state, topic, at)).sort(byName)),
    delete: on(remove),
    pause: on(pause),
    disable: on(disable),
    trip: on(trip),
    probe: on(probe),
    reset: on(reset),
  };
}

/** Told only of what changed: a worker looks again at each hint, and looking must not cause the next one. */
const changed = (state: State): void => hint(state, { kind: "topics" });

const byName = (a: TopicRecord, b: TopicRecord): number => (a.name < b.name ? -1 : 1);

function put(state: State, definition: TopicDefinition, source: TopicSource): TopicRecord | "read_only" {
  const known = state.topics.get(definition.name);
  if (known && source === "api" && known.source !== "api") return "read_only";
  const topic = known ?? {
    definition,
    source,
    revision: 0,
    paused: false,
    disabledReason: null,
    breaker: null,
    trips: 0,
  };
  const equal = known !== undefined && plain(known.definition) === plain(definition);
  topic.source = source;
  state.topics.set(definition.name, topic);
  const enables = source === "api" && topic.disabledReason !== null;
  if (!equal || enables) {
    topic.definition = structuredClone(definition);
    topic.revision++;
    topic.disabledReason = null;
    changed(state);
  }
  return record(state, topic);
}

/** The same text for definitions that mean the same: members sorted, absent and undefined alike. */
function plain(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    member !== null && typeof member === "object" && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

function remove(state: State, name: string, source: TopicSource): TopicDelete {
  const topic = state.topics.get(name);
  if (!topic) return "not_found";
  if (source === "api" && topic.source !== "api") return "read_only";
  for (const { message, settledMs } of state.messages.values()) {
    if (message.topic === name && settledMs === null) return "in_use";
  }
  state.topics.delete(name);
  changed(state);
  return "deleted";
}

function pause(state: State, name: string, paused: boolean): TopicRecord | null {
  const topic = state.topics.get(name);
  if (!topic) return null;
  topic.paused = paused;
  if (!paused) topic.disabledReason = null;
  changed(state);
  return record(state, topic);
}

function disable(state: State, name: string, reason: string): void {
  const topic = state.topics.get(name);
  if (!topic) return;
  topic.disabledReason = reason;
  changed(state);
}

function trip(state: State, name: string, cooldownMs: number, reason: string, at?: At): BreakerState {
  const topic = state.topics.get(name);
  if (!topic) return { state: "closed", probeInMs: 0, trips: 0, reason: null };
  const now = nowMs(state, at);
  topic.trips++;
  topic.breaker = { openUntilMs: now + cooldownMs, probeUntilMs: null, reason };
  changed(state);
  return breaker(topic, now);
}

function probe(state: State, name: string, _owner: string, leaseMs: number, at?: At): boolean {
  const open = state.topics.get(name)?.breaker;
  const now = nowMs(state, at);
  if (!open || now < (open.probeUntilMs ?? open.openUntilMs)) return false;
  open.probeUntilMs = now + leaseMs;
  changed(state);
  return true;
}

function reset(state: State, name: string): void {
  const topic = state.topics.get(name);
  if (!topic || (topic.breaker === null && topic.trips === 0)) return;
  topic.breaker = null;
  topic.trips = 0;
  changed(state);
}

function breaker({ breaker, trips }: TopicState, now: number): BreakerState {
  if (!breaker) return { state: "closed", probeInMs: 0, trips, reason: null };
  const { openUntilMs, probeUntilMs, reason } = breaker;
  const probeInMs = Math.max(0, (probeUntilMs ?? openUntilMs) - now);
  return { state: probeUntilMs === null ? "open" : "half_open", probeInMs, trips, reason };
}

function record(state: State, topic: TopicState, at?: At): TopicRecord;
function record(state: State, topic: TopicState | undefined, at?: At): TopicRecord | null;
function record(state: State, topic: TopicState | undefined, at?: At): TopicRecord | null {
  if (!topic) return null;
  const { definition, source, revision, paused, disabledReason } = topic;
  const now = nowMs(state, at);
  return { ...structuredClone(definition), source, revision, paused, disabledReason, breaker: breaker(topic, now) };
}
