/**
 * IP addresses and CIDR ranges as bytes, so that every spelling of an address is compared as what will be dialled.
 * An IPv4-mapped IPv6 address is its IPv4 address.
 */
import { isIPv4, isIPv6 } from "node:net";
/** Null when the text is not an address. A zone (`fe80::1%eth0`) is dropped: it does not change what the address is. */
export function parseAddress(text) {
    const zone = text.indexOf("%");
    const bare = zone === -1 ? text : text.slice(0, zone);
    if (isIPv4(bare))
        return parseV4(bare);
    if (!isIPv6(bare))
        return null;
    const bytes = parseV6(bare);
    return isMapped(bytes) ? bytes.subarray(12) : bytes;
}
/** `10.0.0.0/8`, `fd00::/8`, or one address. Null when malformed. */
export function parseCidr(text) {
    const [host, size, more] = text.trim().split("/");
    if (host === undefined || more !== undefined || host.includes("%"))
        return null;
    const bytes = parseAddress(host);
    if (bytes === null)
        return null;
    const written = isIPv6(host) ? 128 : 32;
    if (size !== undefined && !/^\d{1,3}$/.test(size))
        return null;
    const given = size === undefined ? written : Number(size);
    if (given > written)
        return null;
    // `::ffff:10.0.0.0/104` is written in 128 bits and means 10.0.0.0/8.
    const bits = given - (written - bytes.length * 8);
    return bits < 0 ? null : { bytes, bits };
}
export function contains(range, address) {
    if (range.bytes.length !== address.length)
        return false;
    const whole = range.bits >> 3;
    for (let i = 0; i < whole; i++)
        if (range.bytes[i] !== address[i])
            return false;
    const rest = range.bits & 7;
    if (rest === 0)
        return true;
    const mask = (0xff << (8 - rest)) & 0xff;
    return (range.bytes[whole] & mask) === (address[whole] & mask);
}
function parseV4(text) {
    return Uint8Array.from(text.split("."), Number);
}
function parseV6(text) {
    const bytes = new Uint8Array(16);
    const [head, tail] = text.split("::");
    const front = groups(head ?? "");
    const back = tail === undefined ? [] : groups(tail);
    bytes.set(front, 0);
    bytes.set(back, 16 - back.length);
    return bytes;
}
/** The bytes of `a:b:c` or `a:b:1.2.3.4`; isIPv6 has already said that the text is well formed. */
function groups(text) {
    if (text === "")
        return [];
    return text.split(":").flatMap((group) => {
        if (group.includes("."))
            return Array.from(parseV4(group));
        const value = Number.parseInt(group, 16);
        return [value >> 8, value & 0xff];
    });
}
function isMapped(bytes) {
    return bytes[10] === 0xff && bytes[11] === 0xff && bytes.subarray(0, 10).every((byte) => byte === 0);
}
//# sourceMappingURL=address.js.map