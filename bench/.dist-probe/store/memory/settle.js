import { liveLease } from "./claim.js";
import { keyOf, laneOf, park, tidy } from "./lanes.js";
import { hint, nowMs } from "./state.js";
export function settle(state, settles, at) {
    const now = nowMs(state, at);
    return settles.map((one) => settleOne(state, one, now));
}
function settleOne(state, { id, claim, attempt, durationMs, settlement }, now) {
    const lease = liveLease(state, claim);
    const stored = state.messages.get(id);
    if (!lease?.open.has(id) || !stored || stored.attempts !== attempt)
        return "lost";
    lease.open.delete(id);
    if (lease.open.size === 0)
        state.leases.delete(lease.id);
    if (stored.ordered)
        keyOf(state, stored).inFlight = false;
    apply(state, stored, settlement, now);
    const record = attemptRecord(stored, attempt, durationMs, settlement, now);
    if (record)
        stored.history.push(record);
    const { lane } = laneOf(state, stored);
    tidy(state, stored);
    // Only where something became claimable: a retry, a release, or the next message of an ordering key.
    if (stored.status === "pending" || stored.ordered)
        hint(state, { kind: "work", lane });
    return "settled";
}
function apply(state, stored, settlement, now) {
    switch (settlement.kind) {
        case "delivered":
            stored.status = "delivered";
            stored.settledMs = now;
            return;
        case "retry":
            if (!settlement.counted)
                stored.attempts--;
            stored.suspicion = settlement.suspicion;
            stored.dueMs = now + settlement.delayMs;
            break;
        case "hold":
            if (!settlement.counted)
                stored.attempts--;
            stored.heldReason = settlement.reason;
            break;
        case "release":
            stored.attempts--;
            break;
        case "dead":
            stored.status = "dead";
            stored.resolution = "open";
            stored.diedMs = now;
            if (stored.ordered && settlement.blocksOrder)
                keyOf(state, stored).blockedBy = stored.message.id;
            return;
    }
    stored.status = "pending";
    park(state, stored);
}
/** One row for every attempt that was started (I5); what was only released leaves none. */
function attemptRecord(stored, attempt, durationMs, settlement, now) {
    if (settlement.kind === "release")
        return null;
    const failed = settlement.kind === "delivered" ? { code: null, error: null } : settlement;
    return {
        attempt,
        outcome: settlement.outcome,
        counted: settlement.kind === "retry" || settlement.kind === "hold" ? settlement.counted : true,
        at: new Date(now),
        durationMs,
        code: failed.code,
        error: failed.error,
        nextDueAt: settlement.kind === "retry" ? new Date(stored.dueMs) : null,
    };
}
//# sourceMappingURL=settle.js.map