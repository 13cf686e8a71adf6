/**
 * What may be saved as a sink's url and headers, decided before the first message is sent: a bad header must not become
 * an endless retry, and a person who saves a refused address should learn it at once. Each check returns the reason, or null.
 */
import { isIP } from "node:net";
import { isObject } from "../message/json.ts";
import type { AddressGuard } from "./address-guard.ts";

const URL_BYTES_MAX = 2_048;
const HEADERS_MAX = 32;
const HEADER_BYTES_MAX = 8_192;

// The bad ports of the Fetch standard, and databases, brokers and caches, which answer HTTP with surprises.
const BAD_PORTS = new Set(
  [
    "0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135 137",
    "139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719 1720",
    "1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080",
    "445 1433 1521 2181 3306 3389 5432 5433 5672 6379 6380 6432 9042 9092 11211 16379 26379 27017",
  ]
    .join(" ")
    .split(" "),
);

const LOOPBACK_NAME = /^(?:.+\.)?localhost$|^localhost\.localdomain$|^ip6-(?:localhost|loopback)$/;
const METADATA_NAME = /^metadata\.(?:google\.internal|goog)$/;

export function checkUrl(text: unknown, guard: AddressGuard): string | null {
  if (typeof text !== "string" || Buffer.byteLength(text) > URL_BYTES_MAX) {
    return `the url must be text of at most ${URL_BYTES_MAX} bytes`;
  }
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return "the url is not an absolute URL";
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") return `the url's scheme must be http or https, not ${url.protocol}`;
  if (url.username !== "" || url.password !== "") return "the url must not carry a user or a password: use a header";
  if (BAD_PORTS.has(url.port)) return `port ${url.port} is not a port that HTTP receivers use`;
  return checkHost(url.hostname, guard);
}

/** `hostname` as the URL parser wrote it: `127.1`, `0x7f.1` and `①②⑦.⓪.⓪.①` have become 127.0.0.1 by then. */
function checkHost(hostname: string, guard: AddressGuard): string | null {
  const host = hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  if (host === "") return "the url has no host";
  if (isIP(host) !== 0) {
    const reason = guard.refusal(host);
    return reason === null ? null : `the url's host is ${reason}, which this sink may not use`;
  }
  if (METADATA_NAME.test(host)) return "the url's host is a metadata service, which no sink may use";
  if (LOOPBACK_NAME.test(host) && guard.refusal("127.0.0.1") !== null && guard.refusal("::1") !== null) {
    return "the url's host is a name of this machine, which this sink may not use";
  }
  return null;
}

// Framing and identity belong to the sink: a header that changes where a message ends, which effect it is or who
// signed it would break the promise that is made about all of them.
const RESERVED_NAMES = new Set(
  (
    "host content-length content-encoding transfer-encoding connection keep-alive upgrade te trailer expect proxy-authorization " +
    "proxy-connection idempotency-key traceparent tracestate"
  ).split(" "),
);
const RESERVED_PREFIX = /^(?:makegood|webhook)-/;
const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Takes anything: what is saved comes from outside, and its type proves nothing. */
export function checkHeaders(headers: unknown): string | null {
  if (!isObject(headers)) return "headers must be an object of text";
  const entries = Object.entries<unknown>({ ...headers });
  if (entries.length > HEADERS_MAX) return `at most ${HEADERS_MAX} headers are allowed`;
  const seen = new Set<string>();
  let bytes = 0;
  for (const [name, value] of entries) {
    const lower = name.toLowerCase();
    // JSON.stringify: the name is quoted in a log line or an API answer, and it may hold anything.
    const shown = JSON.stringify(name.slice(0, 100));
    if (!TOKEN.test(lower)) return `${shown} is not a header name`;
    if (RESERVED_NAMES.has(lower) || RESERVED_PREFIX.test(lower))
      return `header ${shown} is set by the sink and cannot be configured`;
    if (seen.has(lower)) return `header ${shown} is given twice`;
    if (typeof value !== "string" || !VALUE.test(value)) {
      return `the value of header ${shown} must be one line of Latin-1 text without control characters`;
    }
    seen.add(lower);
    bytes += name.length + value.length;
  }
  return bytes > HEADER_BYTES_MAX ? `the headers together must be at most ${HEADER_BYTES_MAX} bytes` : null;
}
