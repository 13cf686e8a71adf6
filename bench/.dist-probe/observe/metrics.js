/**
 * Events and counts as Prometheus metrics, in a registry of our own. Labels are bounded: a topic beyond the first thousand
 * counts as `other`, and no id, key or address is ever a label. A scrape never waits for a store that hangs.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
const TOPICS_MAX = 1_000;
const BREAKER = { closed: 0, half_open: 1, open: 2 };
export function createMetrics({ events, version, levels }) {
    const register = new Registry();
    collectDefaultMetrics({ register });
    new Gauge({ name: "makegood_info", help: "The version that runs.", labelNames: ["version"], registers: [register] }).set({ version }, 1);
    const label = cappedLabels(TOPICS_MAX);
    const stop = countEvents(events, register, label);
    const refresh = levelGauges(register, label, levels);
    return {
        contentType: register.contentType,
        async text() {
            await refresh();
            return register.metrics();
        },
        close() {
            stop();
            register.clear();
        },
    };
}
/** The first `max` names are labels of their own; whoever makes up more of them shares one. */
function cappedLabels(max) {
    const known = new Set();
    return (name) => {
        if (known.has(name))
            return name;
        if (known.size >= max)
            return "other";
        known.add(name);
        return name;
    };
}
function countEvents(events, register, label) {
    const registers = [register];
    const counter = (name, help, labelNames = []) => new Counter({ name: `makegood_${name}`, help, labelNames, registers });
    const accepted = counter("accepted_total", "Messages accepted by this process.", ["topic"]);
    const duplicates = counter("duplicates_total", "Enqueues that met their own key again.", ["topic"]);
    const attempts = counter("attempts_total", "Attempts that ended in this process.", ["topic", "outcome"]);
    const died = counter("died_total", "Messages that became dead letters in this process.", ["topic"]);
    const claims = counter("claims_total", "Claim calls to the store.");
    const claimed = counter("claimed_messages_total", "Messages claimed.");
    const reclaimed = counter("reclaimed_total", "Messages taken over from an expired lease.");
    const claimLost = counter("claim_lost_total", "Outcomes not written because the claim was lost.", ["topic"]);
    const storeErrors = counter("store_errors_total", "Calls to the store that failed.", ["during"]);
    const trips = counter("breaker_trips_total", "Breakers opened by this process.", ["topic"]);
    const interventions = counter("interventions_total", "Replays, resolutions and discards.", ["action"]);
    const pruned = counter("pruned_total", "Settled messages deleted after their retention.");
    const seconds = new Histogram({
        name: "makegood_attempt_seconds",
        help: "How long attempts took.",
        labelNames: ["topic"],
        buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60],
        registers,
    });
    const counted = {
        accepted({ topic, inserted, duplicate }) {
            if (inserted > 0)
                accepted.inc({ topic: label(topic) }, inserted);
            if (duplicate > 0)
                duplicates.inc({ topic: label(topic) }, duplicate);
        },
        claimed({ count }) {
            claims.inc();
            claimed.inc(count);
        },
        attempt(event) {
            const topic = label(event.topic);
            attempts.inc({ topic, outcome: event.outcome });
            seconds.observe({ topic }, event.ms / 1_000);
            if (event.status === "dead")
                died.inc({ topic });
        },
        breaker({ topic, state }) {
            if (state === "open")
                trips.inc({ topic: label(topic) });
        },
        claim_lost: ({ topic }) => claimLost.inc({ topic: label(topic) }),
        reclaimed: ({ count }) => reclaimed.inc(count),
        store_error: ({ during }) => storeErrors.inc({ during }),
        intervened: ({ action }) => interventions.inc({ action }),
        pruned: ({ count }) => pruned.inc(count),
    };
    return events.on((event) => counted[event.type]?.(event));
}
function levelGauges(register, label, levels) {
    const registers = [register];
    const gauge = (name, help, labelNames = []) => new Gauge({ name: `makegood_${name}`, help, labelNames, registers });
    const messages = gauge("messages", "Messages by topic and status.", ["topic", "status"]);
    const deadLetters = gauge("dead_letters", "Open dead letters.", ["topic"]);
    const oldest = gauge("oldest_pending_seconds", "Age of the oldest pending message.", ["topic"]);
    const breaker = gauge("breaker_state", "0 closed, 1 half open, 2 open.", ["topic"]);
    const paused = gauge("topic_paused", "1 while a topic is paused.", ["topic"]);
    const up = gauge("store_up", "1 when the store answers.");
    const age = gauge("levels_age_seconds", "How old the numbers of the store are.");
    return async function refresh() {
        const now = await levels();
        for (const one of [messages, deadLetters, oldest, breaker, paused])
            one.reset();
        for (const { topic, status, resolution, count, oldestMs } of now.messages) {
            const name = label(topic);
            messages.inc({ topic: name, status }, count);
            if (status === "dead" && resolution === "open")
                deadLetters.inc({ topic: name }, count);
            if (status === "pending")
                oldest.set({ topic: name }, (oldestMs ?? 0) / 1_000);
        }
        for (const one of now.breakers) {
            breaker.set({ topic: label(one.topic) }, BREAKER[one.state]);
            paused.set({ topic: label(one.topic) }, one.paused ? 1 : 0);
        }
        up.set(now.up ? 1 : 0);
        age.set(now.ageMs === null ? Number.NaN : now.ageMs / 1_000);
    };
}
//# sourceMappingURL=metrics.js.map