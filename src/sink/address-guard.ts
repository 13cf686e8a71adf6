/**
 * The guard against server-side request forgery: which addresses a sink may dial. It sits in the connector, because a
 * guard in `lookup` alone never sees a literal address; every record of a name is checked, and the address that was
 * checked is the address that is dialled. Cloud metadata is refused under every configuration.
 */
import { type LookupAddress, lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { type ConnectionOptions, TLSSocket } from "node:tls";
import { buildConnector } from "undici";
import { MakegoodError } from "../message/errors.ts";
import { type Address, contains, parseAddress, parseCidr, type Range } from "./address.ts";

export interface AddressGuard {
  /** Null when the address may be dialled, else what it is. Text that is not an address is refused. */
  refusal(address: string): string | null;
  readonly lookup: LookupFunction;
  /** Host and port → when its certificate ends, as it was at the last connection. */
  readonly certificates: Map<string, number>;
  /** The same guard for sinks from the config file or from code: private and loopback addresses pass, metadata never. */
  readonly trusting: AddressGuard;
}

export interface AddressGuardOptions {
  /** CIDR ranges that pass although they are reserved; metadata addresses inside them do not. */
  readonly allow?: readonly string[] | undefined;
  readonly lookup?: LookupFunction | undefined;
}

/** The code of the error that a refused address fails a connection with. */
export const ADDRESS_REFUSED = "MAKEGOOD_ADDRESS_REFUSED";

type Label = "private" | "loopback" | "link-local" | "multicast" | "documentation" | "reserved" | "translated";

// Whole link-local IPv4, not a list of hosts: clouds keep adding metadata services there. 168.63.129.16 (Azure),
// 100.100.100.200 (Alibaba) and 192.0.0.192 (Oracle) stand outside of it.
const NEVER = ranges("169.254.0.0/16 168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::/32 fd20:ce::/32 fe80::a9fe:a9fe");

const RESERVED: readonly (readonly [Label, readonly Range[]])[] = [
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

export function createAddressGuard(options: AddressGuardOptions = {}): AddressGuard {
  const allow = (options.allow ?? []).map((text) => {
    const range = parseCidr(text);
    if (range === null) throw new MakegoodError("invalid_config", `"${text}" is not a CIDR range such as 10.0.0.0/8`, { text });
    return range;
  });
  const lookup = options.lookup ?? (systemLookup as LookupFunction);
  const certificates = new Map<string, number>();
  const trusting: AddressGuard = {
    refusal: (text) => refusal(parseAddress(text), allow, true),
    lookup,
    certificates,
    get trusting() {
      return trusting;
    },
  };
  return { refusal: (text) => refusal(parseAddress(text), allow, false), lookup, certificates, trusting };
}

function refusal(address: Address | null, allow: readonly Range[], trusted: boolean): string | null {
  if (address === null) return "not an IP address";
  const inner = carriedV4(address);
  if (inAny(NEVER, address) || (inner !== null && inAny(NEVER, inner))) return "a metadata or link-local address";
  const label = labelOf(address);
  if (label === null) return null;
  // An allowed translation range opens the way, not the network behind it: the carried address must pass by itself.
  if (inAny(allow, address)) return inner === null ? null : refusal(inner, allow, trusted);
  if (trusted && (label === "private" || label === "loopback")) return null;
  return `a ${label} address`;
}

function labelOf(address: Address): Label | null {
  for (const [label, list] of RESERVED) if (inAny(list, address)) return label;
  // Everything that IANA has not handed out as global unicast is refused, so that a new reserved range is closed by default.
  return address.length === 16 && !inAny(GLOBAL_V6, address) ? "reserved" : null;
}

function carriedV4(address: Address): Address | null {
  if (inAny(LAST_FOUR, address)) return address.subarray(12);
  return inAny(SIX_TO_FOUR, address) ? address.subarray(2, 6) : null;
}

export interface ConnectorOptions {
  readonly connectTimeoutMs: number;
  readonly tls?: Pick<ConnectionOptions, "ca" | "cert" | "key"> | undefined;
}

/** An undici connector that dials only what the guard lets through. No proxy setting of the environment is honoured. */
export function guardedConnector(guard: AddressGuard, options: ConnectorOptions): buildConnector.connector {
  const dial = buildConnector({
    ...options.tls,
    timeout: options.connectTimeoutMs,
    lookup: guardedLookup(guard),
  } as buildConnector.BuildOptions);

  return (target, callback) => {
    const hostname = target.hostname.replace(/^\[|\]$/g, "");
    // node:net never calls lookup for a literal address.
    const reason = isIP(hostname) === 0 ? null : guard.refusal(hostname);
    if (reason !== null) return queueMicrotask(() => callback(refused(reason), null));
    dial(target, (error, socket) => {
      if (error !== null) return callback(error, null);
      // The last word has the kernel: what is really on the other end, however the name was resolved.
      const peer = socket.remoteAddress;
      const peerReason = peer === undefined ? null : guard.refusal(peer);
      if (peer !== undefined && peerReason === null) {
        remember(guard.certificates, target.host ?? hostname, socket);
        return callback(null, socket);
      }
      socket.on("error", () => undefined).destroy();
      callback(peerReason === null ? closedAtOnce() : refused(peerReason), null);
    });
  };
}

const CERTIFICATES_MAX = 1_000;

export const certificateOf = ({ certificates }: AddressGuard, url: string): number | null =>
  (URL.canParse(url) ? certificates.get(new URL(url).host) : undefined) ?? null;

/** I10: of so many receivers, those that were dialled last. */
function remember(certificates: Map<string, number>, host: string, socket: Socket): void {
  const endsMs = socket instanceof TLSSocket ? Date.parse(socket.getPeerCertificate().valid_to) : Number.NaN;
  if (Number.isNaN(endsMs)) return;
  certificates.delete(host);
  certificates.set(host, endsMs);
  const [first] = certificates.size > CERTIFICATES_MAX ? certificates.keys() : [];
  if (first !== undefined) certificates.delete(first);
}

/** Asks for all records and refuses the name when one of them is refused: half a rebinding is a rebinding. */
export function guardedLookup(guard: AddressGuard): LookupFunction {
  return (hostname, options, callback) => {
    guard.lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, "");
      const records = (Array.isArray(found) ? found : [{ address: found, family: isIP(found) }]) as LookupAddress[];
      for (const { address } of records) {
        const reason = guard.refusal(address);
        if (reason !== null) return callback(refused(reason), "");
      }
      const first = records[0];
      if (first === undefined) return callback(noRecords(hostname), "");
      if (options.all) callback(null, records);
      else callback(null, first.address, first.family);
    });
  };
}

/** Names the kind of address and not the address: who may only save a URL must not read the internal DNS from a refusal. */
function refused(reason: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`the receiver's host is ${reason}, which this sink may not use`), { code: ADDRESS_REFUSED });
}

function noRecords(hostname: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${hostname} has no address`), { code: "ENOTFOUND" });
}

function closedAtOnce(): NodeJS.ErrnoException {
  return Object.assign(new Error("the connection was closed as soon as it was made"), { code: "ECONNRESET" });
}

function inAny(list: readonly Range[], address: Address): boolean {
  return list.some((range) => contains(range, address));
}

function ranges(text: string): Range[] {
  return text.split(" ").map((cidr) => parseCidr(cidr) as Range);
}
