import { dueAt } from "./lanes.js";
export function announceSettled(attempt, result, events, nowMs) {
    const { message, lane, settle } = attempt;
    if (!settle)
        return;
    const { settlement } = settle;
    if (result === "lost") {
        events.emit({ type: "claim_lost", topic: message.topic, id: message.id, attempt: message.attempt });
        return;
    }
    // We know what became due without asking the store: the message itself, or the next one of its ordering key.
    if (settlement.kind === "retry")
        dueAt(lane, nowMs + settlement.delayMs);
    else if (settlement.kind === "release" || message.orderingKey !== null)
        dueAt(lane, nowMs);
    if (settlement.kind === "release")
        return;
    if (events.heard)
        events.emit(attemptEvent(attempt, settlement, settle.durationMs ?? 0));
}
const STATUS = { delivered: "delivered", retry: "pending", dead: "dead", hold: "held" };
function attemptEvent({ message, alert }, settlement, ms) {
    const failed = settlement.kind === "delivered" ? null : settlement;
    return {
        type: "attempt",
        topic: message.topic,
        id: message.id,
        attempt: message.attempt,
        outcome: settlement.outcome,
        status: STATUS[settlement.kind],
        ms,
        code: failed?.code ?? null,
        error: failed?.error ?? null,
        alert,
    };
}
//# sourceMappingURL=settled-event.js.map