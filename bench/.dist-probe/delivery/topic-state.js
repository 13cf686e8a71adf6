/** One slot is freed so seldom that others would feel it: above this, a topic may not take them all. */
const SLOW_MS = 1_000;
export function createTopicState(name, chosen, breaker) {
    return {
        name,
        breaker,
        entry: null,
        chosen,
        tenants: new Map(),
        leaseMs: 0,
        held: 0,
        allowance: 0,
        tenantLimit: null,
        paceMs: Number.NaN,
        // Until it has shown otherwise: a first batch must not fill every slot with what turns out to take ten seconds.
        slow: true,
    };
}
export function tenantOf(topic, tenantId) {
    let tenant = topic.tenants.get(tenantId);
    if (!tenant) {
        tenant = { held: 0, lanes: 0 };
        topic.tenants.set(tenantId, tenant);
    }
    return tenant;
}
export function paced(topic, durationMs) {
    topic.paceMs = Number.isNaN(topic.paceMs) ? durationMs : topic.paceMs + (durationMs - topic.paceMs) / 8;
    topic.slow = topic.paceMs > SLOW_MS;
}
/** Attempts that have not answered yet say as much as those that have. */
export function stillRunning(topic, forMs) {
    if (forMs > SLOW_MS)
        topic.slow = true;
}
/** Whether anything of the topic may be attempted here now. */
export function isOpen(topic, nowMs) {
    const entry = topic.entry;
    if (!topic.chosen || !entry || entry.gone)
        return false;
    const { paused, disabledReason } = entry.record;
    return !paused && disabledReason === null && topic.breaker.admits(nowMs) !== "none";
}
/** How many more messages a topic may have, before tenants and capacity are looked at. */
export function allowanceOf(topic, hasSink, nowMs, crowd) {
    const record = topic.entry?.record;
    if (!record || !hasSink || !isOpen(topic, nowMs))
        return 0;
    if (topic.breaker.admits(nowMs) === "one")
        return topic.held === 0 ? 1 : 0;
    const room = record.concurrency === null ? Number.POSITIVE_INFINITY : record.concurrency - topic.held;
    if (!topic.slow || crowd.served < 2)
        return Math.max(0, room);
    // Never more than slow topics leave free: one of them gets half of the slots, two get a third each, and some always stay free.
    const slots = Math.floor((crowd.concurrency - crowd.slowHeld - topic.held) / (crowd.slowAsking + 1));
    return Math.max(0, Math.min(room, Math.max(slots, topic.held === 0 ? 1 : 0)));
}
//# sourceMappingURL=topic-state.js.map