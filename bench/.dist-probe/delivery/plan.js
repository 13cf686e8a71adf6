import { waterFill } from "./water-fill.js";
export const PLAN = {
    lanesMax: 200,
    agedShare: 0.2,
    suspectGroupSize: 8,
    suspectGroupsMax: 4,
    claimsMax: 4,
};
export function plan(input) {
    const lanes = input.lanes.filter((lane) => lane.topic.allowance > 0);
    const trusted = lanes.filter(({ suspicion }) => suspicion === 0);
    const claims = planSuspects(suspectsInTurn(lanes, trusted, input.capacity), input);
    const used = claims.reduce((sum, claim) => sum + total(claim), 0);
    const capacity = Math.min(input.capacity, Number.MAX_SAFE_INTEGER) - used;
    if (capacity <= 0 || trusted.length === 0)
        return { claims, carry: input.carry };
    const fifth = capacity * PLAN.agedShare + input.carry;
    const aged = Math.min(capacity, Math.floor(fifth));
    const chosen = choose(trusted, input.nowMs, aged > 0);
    const purse = openPurse(chosen.all, input, claims);
    // The fifth first: whoever was served longest ago, whatever its priority.
    let left = capacity - giveInTurn(chosen.aged, aged, purse);
    // Then by level; what the likely needs leave over goes round once more.
    for (const hungry of [true, false]) {
        for (const level of chosen.levels)
            left -= share(level, left, purse, hungry);
    }
    claims.push(...byLease(chosen.all, purse));
    return { claims: claims.slice(0, PLAN.claimsMax), carry: Math.min(1, fifth - aged) };
}
const total = (claim) => claim.lanes.reduce((sum, { limit }) => sum + limit, 0);
/** How long a lane has been passed over. Not how long its first message waits: a flood would outrank everyone by its own length. */
function passedOverMs(lane, nowMs) {
    return Math.max(0, Math.min(nowMs - lane.dueMs, nowMs - lane.servedMs));
}
/** At most `lanesMax` lanes for one claim, rotating: the best levels and, within a level, those served longest ago. */
function choose(lanes, nowMs, withAged) {
    const ranked = lanes.map((lane) => {
        const age = passedOverMs(lane, nowMs);
        return { lane, age, level: lane.priority + Math.floor(age / 1_000) };
    });
    ranked.sort((a, b) => b.level - a.level || a.lane.servedMs - b.lane.servedMs || a.lane.dueMs - b.lane.dueMs);
    const agedMax = withAged ? Math.ceil(PLAN.lanesMax * PLAN.agedShare) : 0;
    const best = ranked[0]?.level;
    const below = agedMax === 0 ? [] : ranked.filter(({ level }) => level !== best);
    const oldest = below.sort((a, b) => b.age - a.age).slice(0, agedMax);
    const keep = new Set(oldest);
    for (const one of ranked) {
        if (keep.size >= PLAN.lanesMax)
            break;
        keep.add(one);
    }
    const levels = new Map();
    for (const { lane, level } of ranked.filter((one) => keep.has(one))) {
        const group = levels.get(level);
        if (group)
            group.push(lane);
        else
            levels.set(level, [lane]);
    }
    return { all: [...keep].map(({ lane }) => lane), aged: oldest.map(({ lane }) => lane), levels: [...levels.values()] };
}
function openPurse(lanes, input, claims) {
    const tenants = new Map();
    for (const { topic, tenant } of lanes) {
        const known = tenants.get(topic);
        if (known)
            known.add(tenant);
        else
            tenants.set(topic, new Set([tenant]));
    }
    const tenantCap = ({ topic }) => {
        if (topic.tenantLimit !== null)
            return topic.tenantLimit;
        if ((tenants.get(topic)?.size ?? 0) < 2)
            return Number.POSITIVE_INFINITY;
        return Math.max(1, Math.ceil(Math.min(input.total, topic.held + topic.allowance) / 2));
    };
    const purse = { grants: new Map(), byTopic: new Map(), byTenant: new Map(), tenantCap };
    for (const { lane, limit } of claims.flatMap((claim) => claim.lanes))
        spend(purse, lane, limit);
    return purse;
}
function spend({ grants, byTopic, byTenant }, lane, amount) {
    grants.set(lane, (grants.get(lane) ?? 0) + amount);
    byTopic.set(lane.topic, (byTopic.get(lane.topic) ?? 0) + amount);
    byTenant.set(lane.tenant, (byTenant.get(lane.tenant) ?? 0) + amount);
}
/** Lane by lane, and not by what topics and tenants hold: the first in line gets something whatever else its topic has. */
function giveInTurn(lanes, amount, purse) {
    const each = Math.max(1, Math.ceil(amount / Math.max(1, lanes.length)));
    let left = amount;
    for (const lane of lanes) {
        const ofTopic = lane.topic.allowance - (purse.byTopic.get(lane.topic) ?? 0);
        const ofTenant = purse.tenantCap(lane) - lane.tenant.held - (purse.byTenant.get(lane.tenant) ?? 0);
        const limit = Math.min(left, each, lane.appetite, ofTopic, ofTenant);
        if (limit <= 0)
            continue;
        left -= limit;
        spend(purse, lane, limit);
    }
    return amount - left;
}
/** Shares an amount between lanes: equally by topic, within it by tenant, within it by lane. Returns what was given. */
function share(lanes, amount, purse, hungry) {
    if (amount <= 0 || lanes.length === 0)
        return 0;
    let given = 0;
    const appetite = (lane) => (hungry ? Math.max(0, lane.appetite - (purse.grants.get(lane) ?? 0)) : amount);
    const topics = groups(lanes, (lane) => lane.topic).map(([topic, ofTopic]) => {
        const tenants = groups(ofTopic, (lane) => lane.tenant).map(([tenant, ofTenant]) => {
            const held = tenant.held + (purse.byTenant.get(tenant) ?? 0);
            const cap = Math.max(0, purse.tenantCap(ofTenant[0]) - held);
            return { key: tenant, lanes: ofTenant, held, max: Math.min(cap, sum(ofTenant, appetite)) };
        });
        const spent = purse.byTopic.get(topic) ?? 0;
        const max = Math.min(Math.max(0, topic.allowance - spent), sum(tenants, (tenant) => tenant.max));
        return { held: topic.held + spent, max, tenants };
    });
    waterFill(topics, amount).forEach((forTopic, i) => {
        const tenants = topics[i]?.tenants ?? [];
        waterFill(tenants, forTopic).forEach((forTenant, j) => {
            const ofTenant = tenants[j]?.lanes ?? [];
            const vessels = ofTenant.map((lane) => ({ held: 0, max: appetite(lane) }));
            waterFill(vessels, forTenant).forEach((limit, k) => {
                if (limit <= 0)
                    return;
                given += limit;
                spend(purse, ofTenant[k], limit);
            });
        });
    });
    return given;
}
function groups(lanes, keyOf) {
    const found = new Map();
    for (const lane of lanes) {
        const group = found.get(keyOf(lane));
        if (group)
            group.push(lane);
        else
            found.set(keyOf(lane), [lane]);
    }
    return [...found];
}
function sum(items, amountOf) {
    let result = 0;
    for (const item of items)
        result += amountOf(item);
    return result;
}
/** One claim has one lease time; the claim with the best lane goes first. */
function byLease(lanes, { grants }) {
    const granted = lanes.flatMap((lane) => (grants.get(lane) ? [{ lane, limit: grants.get(lane) }] : []));
    return groups(granted, ({ lane }) => lane.topic.leaseMs).map(([leaseMs, list]) => ({ leaseMs, suspicion: 0, lanes: list }));
}
/** With little room suspects and others take turns; otherwise suspects, who are few at a time, go first. */
function suspectsInTurn(lanes, trusted, capacity) {
    const suspects = lanes.filter(({ suspicion }) => suspicion > 0);
    if (trusted.length === 0 || capacity > 2 * PLAN.suspectGroupSize)
        return suspects;
    const lastMs = trusted.reduce((latest, { servedMs }) => Math.max(latest, servedMs), Number.NEGATIVE_INFINITY);
    return suspects.filter(({ servedMs }) => servedMs < lastMs);
}
/**
 * A message that may have killed its worker is claimed with at most a few others, and alone after that: when it strikes
 * again, few or none are charged with it.
 */
function planSuspects(lanes, input) {
    const claims = [];
    let left = input.capacity;
    const single = input.suspectSingles > 0 ? [] : oldestFirst(lanes, 2);
    if (left > 0 && single[0] && tenantRoom(single[0]) > 0) {
        left--;
        claims.push({ leaseMs: single[0].topic.leaseMs, suspicion: 2, lanes: [{ lane: single[0], limit: 1 }] });
    }
    const lane = input.suspectGroups >= PLAN.suspectGroupsMax ? undefined : oldestFirst(lanes, 1)[0];
    if (lane) {
        const spent = claims[0]?.lanes[0]?.lane.topic === lane.topic ? 1 : 0;
        const limit = Math.min(left, PLAN.suspectGroupSize, lane.topic.allowance - spent, tenantRoom(lane) - spent);
        if (limit > 0)
            claims.push({ leaseMs: lane.topic.leaseMs, suspicion: 1, lanes: [{ lane, limit }] });
    }
    return claims;
}
const tenantRoom = ({ topic, tenant }) => (topic.tenantLimit ?? Number.POSITIVE_INFINITY) - tenant.held;
function oldestFirst(lanes, suspicion) {
    const found = lanes.filter((lane) => lane.suspicion === suspicion && tenantRoom(lane) > 0);
    return found.sort((a, b) => a.servedMs - b.servedMs || a.dueMs - b.dueMs);
}
//# sourceMappingURL=plan.js.map