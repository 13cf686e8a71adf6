/** Who may ask, and under which name: tokens by their digests, the Host header (DNS rebinding), and the origin of a page. */
import { createHash, timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";
import { SYSTEM } from "../recovery/provenance.ts";
import { type ApiRequest, refused } from "./http.ts";

export type Token = {
  readonly name: string;
  readonly digest: Buffer;
  /** Refused from then on; null: never. */
  readonly expiresMs: number | null;
};

const TOKEN_BYTES_MIN = 16;
const TOKEN_NAME = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/;
const EXPIRY = /;expires=([^;]*)$/;
const DAY = /^\d{4}-\d\d-\d\d$/;
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)$/;

/**
 * `name:secret,name2:secret2`, also one a line, each with `;expires=2027-01-31` behind it if it is to end; null: there are none. Every fault is
 * reported, none with a secret in it.
 */
export function parseTokens(text: string | null): { tokens: Token[]; faults: string[] } {
  const tokens: Token[] = [];
  const faults: string[] = [];
  for (const [at, entry] of (text ?? "").split(/[,\n]/).entries()) {
    if (entry.trim() === "") continue;
    const [, name = "", value] = /^([^:]*):(.*)$/s.exec(entry.trim()) ?? [];
    const secret = value?.replace(EXPIRY, "");
    const expiresMs = expiryOf(EXPIRY.exec(value ?? "")?.[1] ?? null);
    const which = `entry ${at + 1}`;
    if (secret === undefined) faults.push(`${which} is not name:secret`);
    else if (!TOKEN_NAME.test(name)) faults.push(`${which} has no usable name (letters, digits, . _ @ -, up to 64)`);
    else if (name === SYSTEM.actor)
      faults.push(`${which}: ${name} is what the server calls itself on record: choose another name`);
    else if (tokens.some((token) => token.name === name)) faults.push(`the name ${name} is given twice`);
    else if (Buffer.byteLength(secret) < TOKEN_BYTES_MIN)
      faults.push(`the secret of ${name} is shorter than ${TOKEN_BYTES_MIN} characters`);
    else if (Number.isNaN(expiresMs)) faults.push(`the expiry of ${name} is no date such as 2027-01-31 or 2027-01-31T12:00Z`);
    else tokens.push({ name, digest: digest(secret), expiresMs });
  }
  if (text !== null && tokens.length === 0 && faults.length === 0) faults.push("it is empty");
  return { tokens, faults };
}

/** A day is over when it ends, in UTC. NaN: not a date. */
function expiryOf(text: string | null): number | null {
  if (text === null) return null;
  if (DAY.test(text)) return Date.parse(`${text}T24:00:00Z`);
  return MOMENT.test(text) ? Date.parse(text) : Number.NaN;
}

/** Whose it is, or null. Every entry is compared, so that the time taken says nothing about which one was near. */
export function tokenOf(authorization: string | null, tokens: readonly Token[]): Token | null {
  const match = /^Bearer +([^\s]+) *$/i.exec(authorization ?? "");
  const given = digest(match?.[1] ?? "");
  let found: Token | null = null;
  for (const token of tokens) {
    if (timingSafeEqual(given, token.digest) && match) found = token;
  }
  return found;
}

export function isLoopbackHost(host: string): boolean {
  const name = bare(host);
  return name === "localhost" || name === "::1" || (isIP(name) === 4 && name.startsWith("127."));
}

/** `names`: MAKEGOOD_HOSTS, by which a proxy or a DNS record calls us. */
export type HostRule = { readonly bound: string; readonly names: readonly string[] };

export function isAllowedHost(header: string | null, rule: HostRule): boolean {
  const [, given] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?$/i.exec(header ?? "") ?? [];
  if (given === undefined) return false;
  const name = bare(given);
  const listed = rule.names.some((allowed) => bare(allowed) === name);
  if (listed || name === bare(rule.bound)) return true;
  if (isLoopbackHost(rule.bound)) return name === "localhost" || name === "127.0.0.1" || name === "::1";
  // A page cannot rebind an address literal, only a name.
  return rule.names.length === 0 && isIP(name) !== 0;
}

function bare(host: string): string {
  const name = host.trim().toLowerCase();
  return name.startsWith("[") && name.endsWith("]") ? name.slice(1, -1) : name;
}

export function refuseCrossOrigin(request: Pick<ApiRequest, "header">): void {
  const site = request.header("sec-fetch-site");
  if (site !== null && site !== "same-origin" && site !== "none")
    throw refused("cross_origin_refused", `a page of another origin (${JSON.stringify(site)}) may not change anything here`);
  const origin = request.header("origin");
  const host = request.header("host");
  const own = origin === null || (host !== null && (origin === `http://${host}` || origin === `https://${host}`));
  if (!own) throw refused("cross_origin_refused", "the Origin header names another origin");
}

const digest = (secret: string): Buffer => createHash("sha256").update(secret).digest();
