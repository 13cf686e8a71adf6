import { hint, nowMs } from "./state.js";
/** `alive` throws when the store is closed. */
export function createTopics(state, alive) {
    const on = (call) => async (...args) => {
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
const changed = (state) => hint(state, { kind: "topics" });
const byName = (a, b) => (a.name < b.name ? -1 : 1);
function put(state, definition, source) {
    const known = state.topics.get(definition.name);
    if (known && source === "api" && known.source !== "api")
        return "read_only";
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
    if (!equal) {
        topic.definition = structuredClone(definition);
        topic.revision++;
        topic.disabledReason = null;
        changed(state);
    }
    return record(state, topic);
}
/** The same text for definitions that mean the same: members sorted, absent and undefined alike. */
function plain(value) {
    return JSON.stringify(value, (_, member) => member !== null && typeof member === "object" && !Array.isArray(member)
        ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
        : member);
}
function remove(state, name, source) {
    const topic = state.topics.get(name);
    if (!topic)
        return "not_found";
    if (source === "api" && topic.source !== "api")
        return "read_only";
    for (const { message, settledMs } of state.messages.values()) {
        if (message.topic === name && settledMs === null)
            return "in_use";
    }
    state.topics.delete(name);
    changed(state);
    return "deleted";
}
function pause(state, name, paused) {
    const topic = state.topics.get(name);
    if (!topic)
        return null;
    topic.paused = paused;
    if (!paused)
        topic.disabledReason = null;
    changed(state);
    return record(state, topic);
}
function disable(state, name, reason) {
    const topic = state.topics.get(name);
    if (!topic)
        return;
    topic.disabledReason = reason;
    changed(state);
}
function trip(state, name, cooldownMs, reason, at) {
    const topic = state.topics.get(name);
    if (!topic)
        return { state: "closed", probeInMs: 0, trips: 0, reason: null };
    const now = nowMs(state, at);
    topic.trips++;
    topic.breaker = { openUntilMs: now + cooldownMs, probeUntilMs: null, reason };
    changed(state);
    return breaker(topic, now);
}
function probe(state, name, _owner, leaseMs, at) {
    const open = state.topics.get(name)?.breaker;
    const now = nowMs(state, at);
    if (!open || now < (open.probeUntilMs ?? open.openUntilMs))
        return false;
    open.probeUntilMs = now + leaseMs;
    changed(state);
    return true;
}
function reset(state, name) {
    const topic = state.topics.get(name);
    if (!topic || (topic.breaker === null && topic.trips === 0))
        return;
    topic.breaker = null;
    topic.trips = 0;
    changed(state);
}
function breaker({ breaker, trips }, now) {
    if (!breaker)
        return { state: "closed", probeInMs: 0, trips, reason: null };
    const { openUntilMs, probeUntilMs, reason } = breaker;
    const probeInMs = Math.max(0, (probeUntilMs ?? openUntilMs) - now);
    return { state: probeUntilMs === null ? "open" : "half_open", probeInMs, trips, reason };
}
function record(state, topic, at) {
    if (!topic)
        return null;
    const { definition, source, revision, paused, disabledReason } = topic;
    const now = nowMs(state, at);
    return { ...structuredClone(definition), source, revision, paused, disabledReason, breaker: breaker(topic, now) };
}
//# sourceMappingURL=topics.js.map