const nameOf = ({ lease, token }) => `${lease} ${token}`;
function byClaim(all) {
    const groups = new Map();
    for (const one of all) {
        const name = nameOf(one.claim);
        const group = groups.get(name);
        if (group)
            group.push(one);
        else
            groups.set(name, [one]);
    }
    return groups;
}
export function createOpenLeases() {
    const leases = new Map();
    const openOf = (lease) => {
        lease.open ??= new Set(lease.ids);
        return lease.open;
    };
    return {
        claimed(messages, ordered) {
            for (const [name, group] of byClaim(messages)) {
                leases.set(name, {
                    ids: group.map((m) => m.id),
                    lanes: group.map((m) => m.lane),
                    ordered: group.some(ordered),
                    open: undefined,
                });
            }
        },
        group: byClaim,
        isWholeAndPlain(group) {
            const lease = leases.get(nameOf(group[0].claim));
            if (!lease || lease.ordered || lease.open || lease.ids.length !== group.length)
                return false;
            if (!group.every(({ settlement }) => settlement.kind === "delivered" && settlement.outcome === "delivered"))
                return false;
            if (group.every((one, i) => one.id === lease.ids[i]))
                return true;
            const ids = new Set(group.map((one) => one.id));
            return ids.size === group.length && lease.ids.every((id) => ids.has(id));
        },
        durations(group) {
            const ms = (one) => Math.round(one?.durationMs ?? 0);
            if (group.every((one) => ms(one) === 0))
                return null;
            const lease = leases.get(nameOf(group[0].claim));
            if (group.every((one, i) => one.id === lease.ids[i]))
                return group.map(ms).join(",");
            const byId = new Map(group.map((one) => [one.id, one]));
            return lease.ids.map((id) => ms(byId.get(id))).join(",");
        },
        endsWith(group) {
            const lease = leases.get(nameOf(group[0].claim));
            if (!lease)
                return false;
            const ids = new Set(group.map((one) => one.id));
            for (const id of openOf(lease))
                if (!ids.has(id))
                    return false;
            return true;
        },
        laneOf(one) {
            const lease = leases.get(nameOf(one.claim));
            const lane = lease?.lanes[lease.ids.indexOf(one.id)];
            return lane === undefined ? undefined : Number(lane);
        },
        settled(settles) {
            for (const one of settles) {
                const name = nameOf(one.claim);
                const lease = leases.get(name);
                if (!lease)
                    continue;
                if (!lease.open && lease.ids.length === 1) {
                    leases.delete(name);
                    continue;
                }
                const open = openOf(lease);
                open.delete(one.id);
                if (open.size === 0)
                    leases.delete(name);
            }
        },
    };
}
//# sourceMappingURL=open-leases.js.map