/**
 * The topics seam in memory: definitions, pause, disabled sinks and breakers. A breaker is open until its cool-down has
 * passed, then one owner at a time may probe it.
 */
import { LIMITS } from "../../message/limits.ts";
import {
  BREAKER_CLOSED,
  type BreakerState,
  type TopicDefinition,
  type TopicRecord,
  type TopicSource,
} from "../../message/topic.ts";
import type { At } from "../store.ts";
import type { BreakerOf, TopicDelete, TopicStore } from "../topics.ts";
import { allot, occupy } from "./allot.ts";
import { hint, nowMs, type State, type TopicState } from "./state.ts";
import { announce, workers } from "./workers.ts";

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
    announce: on(announce),
    workers: on(workers),
    allot: on(allot),
    occupy: on(occupy),
  };
}

/** Only for what changed: a worker looks again at each hint, and looking must not cause the next one. */
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
    probeUntilMs: null,
    restUntilMs: null,
    heldTenants: new Map<string, string>(),
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

function trip(
  state: State,
  name: string,
  cooldownMs: number,
  reason: string,
  of?: BreakerOf & { readonly byHand?: boolean | undefined },
): BreakerState {
  const topic = state.topics.get(name);
  if (!topic) return BREAKER_CLOSED;
  const now = nowMs(state, of);
  const { tenantId = null, byHand = false } = of ?? {};
  if (tenantId === null || mustOpen(topic, tenantId)) open(topic, now, cooldownMs, reason, byHand);
  else if (topic.breaker === null && !topic.heldTenants.has(tenantId)) {
    topic.heldTenants.set(tenantId, reason.slice(0, LIMITS.heldReasonCharsMax));
    topic.probeUntilMs = Math.max(topic.probeUntilMs ?? now, now + cooldownMs);
  }
  changed(state);
  return breaker(topic, now);
}

/** Too many tenants are held for one more to be held alone. */
function mustOpen({ breaker, heldTenants }: TopicState, tenantId: string): boolean {
  return breaker === null && !heldTenants.has(tenantId) && heldTenants.size >= LIMITS.heldTenantsMax;
}

function open(topic: TopicState, now: number, cooldownMs: number, reason: string, byHand: boolean): void {
  const untilMs = topic.probeUntilMs ?? topic.breaker?.openUntilMs ?? now;
  const longerMs = byHand && topic.probeUntilMs === null ? untilMs : now;
  // Two workers that saw the same failures open it once.
  if (!byHand && topic.breaker !== null && untilMs > now && (topic.probeUntilMs === null || now + cooldownMs <= untilMs)) return;
  topic.trips++;
  topic.breaker = { openUntilMs: Math.max(now + cooldownMs, longerMs), reason };
  topic.probeUntilMs = null;
  topic.heldTenants.clear();
}

function probe(
  state: State,
  name: string,
  _owner: string,
  leaseMs: number,
  of?: BreakerOf & { readonly restMs?: number | undefined },
): boolean {
  const topic = state.topics.get(name);
  const now = nowMs(state, of);
  const { tenantId = null, restMs } = of ?? {};
  if (!topic) return false;
  const held = tenantId === null ? topic.breaker !== null : topic.breaker === null && topic.heldTenants.has(tenantId);
  if (!held || now < (topic.probeUntilMs ?? topic.breaker?.openUntilMs ?? now)) return false;
  if (restMs !== undefined) {
    if (now < (topic.restUntilMs ?? now)) return false;
    topic.restUntilMs = now + restMs;
    topic.trips++;
  }
  topic.probeUntilMs = now + leaseMs;
  return true;
}

function reset(state: State, name: string, of?: Pick<BreakerOf, "tenantId">): void {
  const topic = state.topics.get(name);
  if (!topic) return;
  const { tenantId = null } = of ?? {};
  if (tenantId === null) {
    topic.heldTenants.clear();
    topic.breaker = null;
  } else if (!topic.heldTenants.delete(tenantId)) return;
  if (topic.breaker === null && topic.heldTenants.size === 0) {
    topic.probeUntilMs = null;
    topic.restUntilMs = null;
    topic.trips = 0;
  }
  changed(state);
}

function breaker({ breaker, probeUntilMs, trips, heldTenants }: TopicState, now: number): BreakerState {
  const tenants = [...heldTenants].map(([tenantId, reason]) => ({ tenantId, reason }));
  const probeInMs = Math.max(0, (probeUntilMs ?? breaker?.openUntilMs ?? now) - now);
  if (!breaker) return { state: "closed", probeInMs, trips, reason: null, tenants };
  return { state: probeUntilMs === null ? "open" : "half_open", probeInMs, trips, reason: breaker.reason, tenants };
}

function record(state: State, topic: TopicState, at?: At): TopicRecord;
function record(state: State, topic: TopicState | undefined, at?: At): TopicRecord | null;
function record(state: State, topic: TopicState | undefined, at?: At): TopicRecord | null {
  if (!topic) return null;
  const { definition, source, revision, paused, disabledReason } = topic;
  const now = nowMs(state, at);
  return { ...structuredClone(definition), source, revision, paused, disabledReason, breaker: breaker(topic, now) };
}
