import { nowMs } from "./state.js";
const byId = (a, b) => (a.message.id < b.message.id ? -1 : a.message.id > b.message.id ? 1 : 0);
export const byDue = (a, b) => a.dueMs - b.dueMs || byId(a, b);
/** Puts a pending message where it waits. A held one that is not ordered waits nowhere: it is never due. */
export function park(state, stored) {
    if (stored.ordered)
        insert(keyOf(state, stored).waiting, stored, byId);
    else if (stored.heldReason === null)
        insert(laneOf(state, stored).due, stored, byDue);
}
/** Takes a pending message out of where it waits. Call before its due time or suspicion changes. */
export function unpark(state, stored) {
    if (stored.ordered)
        remove(keyOf(state, stored).waiting, stored, byId);
    else if (stored.heldReason === null)
        remove(laneOf(state, stored).due, stored, byDue);
    tidy(state, stored);
}
/** Takes what a claim chose out of where it waits. In a lane without order that is always its front: one cut for all of it. */
export function unparkClaimed(state, chosen) {
    const fronts = new Map();
    for (const stored of chosen) {
        if (stored.ordered) {
            // Closed before it is taken out, so that the key of an only message does not vanish and open again.
            keyOf(state, stored).inFlight = true;
            unpark(state, stored);
        }
        else {
            const lane = laneOf(state, stored);
            fronts.set(lane, { last: stored, count: (fronts.get(lane)?.count ?? 0) + 1 });
        }
    }
    for (const [lane, { last, count }] of fronts) {
        if (lane.due[count - 1] !== last)
            throw new Error(`memory store: ${last.message.id} is not where it should be waiting`);
        lane.due.splice(0, count);
        tidy(state, last);
    }
}
/** The lane a message belongs to now, made when it is missing. */
export function laneOf(state, stored) {
    const { topic, tenantId, priority } = stored.message;
    const suspicion = stored.ordered ? 0 : stored.suspicion;
    const lane = JSON.stringify([topic, tenantId, priority, suspicion, stored.ordered]);
    let found = state.lanes.get(lane);
    if (!found) {
        found = { lane, topic, tenantId, priority, suspicion, ordered: stored.ordered, due: [], keys: new Map() };
        state.lanes.set(lane, found);
    }
    return found;
}
/** The ordering key of an ordered message. */
export function keyOf(state, stored) {
    const keys = laneOf(state, stored).keys;
    const name = stored.message.orderingKey ?? "";
    let key = keys.get(name);
    if (!key) {
        key = { waiting: [], inFlight: false, blockedBy: null };
        keys.set(name, key);
    }
    return key;
}
/** Drops what has become empty, so that lanes and keys do not pile up (I10). */
export function tidy(state, stored) {
    const lane = laneOf(state, stored);
    if (stored.ordered) {
        const key = keyOf(state, stored);
        if (key.waiting.length === 0 && !key.inFlight && key.blockedBy === null)
            lane.keys.delete(stored.message.orderingKey ?? "");
    }
    if (lane.due.length === 0 && lane.keys.size === 0)
        state.lanes.delete(lane.lane);
}
/** The messages of a lane that may be claimed once they are due, first one first. */
export function claimable(lane) {
    if (!lane.ordered)
        return lane.due;
    const heads = [];
    for (const key of lane.keys.values()) {
        const head = key.waiting[0];
        if (head && head.heldReason === null && !key.inFlight && key.blockedBy === null)
            heads.push(head);
    }
    return heads.sort(byDue);
}
export function listLanes(state, at) {
    const now = nowMs(state, at);
    const lanes = [];
    for (const found of state.lanes.values()) {
        const first = claimable(found)[0];
        const { lane, topic, tenantId, priority, suspicion, ordered } = found;
        if (first)
            lanes.push({ lane, topic, tenantId, priority, suspicion, ordered, dueInMs: first.dueMs - now });
    }
    return lanes;
}
function insert(list, stored, order) {
    list.splice(position(list, stored, order), 0, stored);
}
function remove(list, stored, order) {
    const at = position(list, stored, order);
    if (list[at] !== stored)
        throw new Error(`memory store: ${stored.message.id} is not where it should be waiting`);
    list.splice(at, 1);
}
function position(list, stored, order) {
    let low = 0;
    let high = list.length;
    while (low < high) {
        const middle = (low + high) >>> 1;
        if (order(list[middle], stored) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
//# sourceMappingURL=lanes.js.map