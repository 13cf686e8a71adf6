import { claimable, unparkClaimed } from "./lanes.js";
import { nowMs } from "./state.js";
export function claim(state, request) {
    const now = nowMs(state, request);
    const taken = choose(state, request, now);
    if (taken.length === 0)
        return [];
    const lease = {
        id: String(++state.leasesMade),
        size: taken.length,
        open: new Map(),
        token: newToken(state),
        owner: request.owner,
        untilMs: now + request.leaseMs,
    };
    state.leases.set(lease.id, lease);
    unparkClaimed(state, taken.map(({ stored }) => stored));
    for (const { stored, lane } of taken) {
        stored.status = "processing";
        stored.attempts++;
        lease.open.set(stored.message.id, lane);
    }
    return claimed(state, lease, (stored) => stored.message.payload);
}
/** The due messages of the named lanes in their order, up to each lane's limit and the bytes of the whole batch. */
function choose(state, request, now) {
    const taken = new Map();
    let bytesLeft = request.bytesMax ?? Number.POSITIVE_INFINITY;
    for (const { lane, limit } of request.lanes) {
        const found = state.lanes.get(lane);
        let left = limit;
        for (const stored of found ? claimable(found) : []) {
            if (left <= 0 || stored.dueMs > now)
                break;
            if (taken.has(stored.message.id))
                continue;
            bytesLeft -= Buffer.byteLength(stored.message.payload);
            // At least one, or a message larger than the budget would never be claimed by anybody.
            if (bytesLeft < 0 && taken.size > 0)
                return [...taken.values()];
            taken.set(stored.message.id, { stored, lane });
            left--;
        }
    }
    return [...taken.values()];
}
export function extend(state, claims, leaseMs, at) {
    const now = nowMs(state, at);
    return claims.map((held) => {
        const lease = liveLease(state, held);
        if (!lease)
            return "lost";
        lease.untilMs = now + leaseMs;
        return "extended";
    });
}
export function reclaim(state, request) {
    const now = nowMs(state, request);
    const expired = [...state.leases.values()].filter((lease) => lease.untilMs < now).sort((a, b) => a.untilMs - b.untilMs);
    return expired.slice(0, request.limit).flatMap((lease) => {
        lease.token = newToken(state);
        lease.owner = request.owner;
        lease.untilMs = now + request.leaseMs;
        return claimed(state, lease, () => "");
    });
}
/** The lease of a claim, if its token is still the one that counts (I4). */
export function liveLease(state, held) {
    const lease = state.leases.get(held.lease);
    return lease?.token === held.token ? lease : undefined;
}
function claimed(state, lease, payload) {
    return [...lease.open].map(([id, lane]) => {
        const stored = state.messages.get(id);
        const { topic, tenantId, priority, key, orderingKey, traceparent, schemaVersion, directTry } = stored.message;
        return {
            id,
            claim: { lease: lease.id, token: lease.token },
            lane,
            topic,
            tenantId,
            priority,
            key,
            orderingKey,
            payload: payload(stored),
            traceparent,
            schemaVersion,
            attempt: stored.attempts,
            base: stored.base,
            handedDown: directTry !== undefined,
            suspicion: stored.suspicion,
            leaseSize: lease.size,
        };
    });
}
function newToken(state) {
    return Buffer.from(state.random.bytes(16)).toString("hex");
}
//# sourceMappingURL=claim.js.map