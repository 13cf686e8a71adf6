/**
 * The guard against server-side request forgery: which addresses a sink may dial. It sits in the connector, because a
 * guard in `lookup` alone never sees a literal address; every record of a name is checked, and the address that was
 * checked is the address that is dialled. Cloud metadata is refused whatever the configuration says.
 */
import { lookup as systemLookup } from "node:dns";
import { isIP } from "node:net";
import { buildConnector } from "undici";
import { MakegoodError } from "../message/errors.js";
import { contains, parseAddress, parseCidr } from "./address.js";
/** The code of the error that a refused address fails a connection with. */
export const ADDRESS_REFUSED = "MAKEGOOD_ADDRESS_REFUSED";
// Whole link-local IPv4, not a list of hosts: clouds keep adding metadata services there. 168.63.129.16 (Azure),
// 100.100.100.200 (Alibaba) and 192.0.0.192 (Oracle) stand outside of it.
const NEVER = ranges("169.254.0.0/16 168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::/32 fd20:ce::/32 fe80::a9fe:a9fe");
const RESERVED = [
    ["loopback", ranges("127.0.0.0/8 ::1")],
    ["private", ranges("10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7")],
    ["link-local", ranges("fe80::/10 fec0::/10")],
    ["multicast", ranges("224.0.0.0/4 ff00::/8")],
    ["documentation", ranges("192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20")],
    // NAT64, 6to4 and Teredo carry an IPv4 address that the guard would otherwise never look at.
    ["translated", ranges("64:ff9b::/96 64:ff9b:1::/48 2002::/16 2001::/32")],
    ["reserved", ranges("0.0.0.0/8 192.0.0.0/24 192.88.99.0/24 198.18.0.0/15 240.0.0.0/4 100::/64 2001::/23 5f00::/16 ::/96")],
];
const GLOBAL_V6 = ranges("2000::/3");
const LAST_FOUR = ranges("64:ff9b::/96 64:ff9b:1::/48");
const SIX_TO_FOUR = ranges("2002::/16");
export function createAddressGuard(options = {}) {
    const allow = (options.allow ?? []).map((text) => {
        const range = parseCidr(text);
        if (range === null)
            throw new MakegoodError("invalid_config", `"${text}" is not a CIDR range such as 10.0.0.0/8`, { text });
        return range;
    });
    const lookup = options.lookup ?? systemLookup;
    const trusting = {
        refusal: (text) => refusal(parseAddress(text), allow, true),
        lookup,
        get trusting() {
            return trusting;
        },
    };
    return { refusal: (text) => refusal(parseAddress(text), allow, false), lookup, trusting };
}
function refusal(address, allow, trusted) {
    if (address === null)
        return "not an IP address";
    const inner = carriedV4(address);
    if (within(NEVER, address) || (inner !== null && within(NEVER, inner)))
        return "a metadata or link-local address";
    const label = labelOf(address);
    if (label === null)
        return null;
    // An allowed translation range opens the way, not the network behind it: the carried address must pass by itself.
    if (within(allow, address))
        return inner === null ? null : refusal(inner, allow, trusted);
    if (trusted && (label === "private" || label === "loopback"))
        return null;
    return `a ${label} address`;
}
function labelOf(address) {
    for (const [label, list] of RESERVED)
        if (within(list, address))
            return label;
    // Everything that IANA has not handed out as global unicast is refused, so that a new reserved range is closed by default.
    return address.length === 16 && !within(GLOBAL_V6, address) ? "reserved" : null;
}
function carriedV4(address) {
    if (within(LAST_FOUR, address))
        return address.subarray(12);
    return within(SIX_TO_FOUR, address) ? address.subarray(2, 6) : null;
}
/** An undici connector that dials only what the guard lets through. No proxy setting of the environment is honoured. */
export function guardedConnector(guard, options) {
    const dial = buildConnector({
        ...options.tls,
        timeout: options.connectTimeoutMs,
        lookup: guardedLookup(guard),
    });
    return (target, callback) => {
        const hostname = target.hostname.replace(/^\[|\]$/g, "");
        // node:net never calls lookup for a literal address.
        const reason = isIP(hostname) === 0 ? null : guard.refusal(hostname);
        if (reason !== null)
            return queueMicrotask(() => callback(refused(reason), null));
        dial(target, (error, socket) => {
            if (error !== null)
                return callback(error, null);
            // The last word has the kernel: what is really on the other end, however the name was resolved.
            const peer = socket.remoteAddress;
            const peerReason = peer === undefined ? null : guard.refusal(peer);
            if (peer !== undefined && peerReason === null)
                return callback(null, socket);
            socket.on("error", () => undefined).destroy();
            callback(peerReason === null ? closedAtOnce() : refused(peerReason), null);
        });
    };
}
/** Asks for all records and refuses the name when one of them is refused: half a rebinding is a rebinding. */
export function guardedLookup(guard) {
    return (hostname, options, callback) => {
        guard.lookup(hostname, { ...options, all: true }, (error, found) => {
            if (error)
                return callback(error, "");
            const records = (Array.isArray(found) ? found : [{ address: found, family: isIP(found) }]);
            for (const { address } of records) {
                const reason = guard.refusal(address);
                if (reason !== null)
                    return callback(refused(reason), "");
            }
            const first = records[0];
            if (first === undefined)
                return callback(noRecords(hostname), "");
            if (options.all)
                callback(null, records);
            else
                callback(null, first.address, first.family);
        });
    };
}
/** Names the kind of address and not the address: who may only save a URL must not read the internal DNS from a refusal. */
function refused(reason) {
    return Object.assign(new Error(`the receiver's host is ${reason}, which this sink may not use`), { code: ADDRESS_REFUSED });
}
function noRecords(hostname) {
    return Object.assign(new Error(`${hostname} has no address`), { code: "ENOTFOUND" });
}
function closedAtOnce() {
    return Object.assign(new Error("the connection was closed as soon as it was made"), { code: "ECONNRESET" });
}
function within(list, address) {
    return list.some((range) => contains(range, address));
}
function ranges(text) {
    return text.split(" ").map((cidr) => parseCidr(cidr));
}
//# sourceMappingURL=address-guard.js.map