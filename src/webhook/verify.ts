/**
 * For receivers: whether a request was signed with one of the secrets (Standard Webhooks 1.0.0) and how old it is. The answer is a value
 * and comes at once: node:crypto is synchronous, which WebCrypto is not. It throws only for a mistake of the receiver's own code.
 */
import { timingSafeEqual } from "node:crypto";
import { systemClock } from "../platform/clock.ts";
import { keysOf } from "./secret.ts";
import { type RawBody, signature } from "./sign.ts";

/** Of fetch, of node:http (Express, Fastify, Koa), or a plain record; names in any spelling. */
export type WebhookHeaders =
  | { get(name: string): string | null | undefined }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface SignedRequest {
  readonly headers: WebhookHeaders;
  /** The raw text or bytes, before any parsing. */
  readonly body: RawBody;
  /** One, or several while they are changed: a request that any of them signed is accepted. */
  readonly secrets: string | readonly string[];
  /** How far the time of the request may be off, past or future; absent: five minutes. */
  readonly toleranceMs?: number | undefined;
  /** Absent: now. */
  readonly nowMs?: number | undefined;
}

export type WebhookRefusal = "header_missing" | "header_malformed" | "too_old" | "too_new" | "signature_wrong";

export type VerifiedWebhook =
  /** `id`: the same over all attempts. `secret`: the place of the first secret that fits, so that one knows when the last one may go. */
  | { readonly ok: true; readonly id: string; readonly atMs: number; readonly secret: number }
  | { readonly ok: false; readonly reason: WebhookRefusal; readonly detail: string };

const TOLERANCE_MS = 300_000;
const SIGNATURES_MAX = 32;
const NAMES = ["webhook-id", "webhook-timestamp", "webhook-signature"] as const;

export function verifyWebhook(request: SignedRequest): VerifiedWebhook {
  const { headers, body, secrets, toleranceMs = TOLERANCE_MS, nowMs = systemClock.wallMs() } = request;
  const keys = keysOf(secrets);
  const values = NAMES.map((name) => valuesOf(headers, name));
  for (const [i, name] of NAMES.entries()) {
    const count = values[i]?.length ?? 0;
    if (count === 0) return refused("header_missing", `${name} is missing`);
    // Two values of one of these headers are one too many to trust.
    if (count > 1) return refused("header_malformed", `${name} is there ${count} times`);
  }
  const [id = "", timestamp = "", given = ""] = values.flat();
  if (id.includes(".")) return refused("header_malformed", "webhook-id must not contain a dot");
  if (!/^\d{1,12}$/.test(timestamp)) return refused("header_malformed", "webhook-timestamp must be whole seconds since 1970");
  const atMs = Number(timestamp) * 1_000;
  // Written so that a tolerance or a clock that is no number refuses.
  if (!(nowMs - atMs <= toleranceMs)) return refused("too_old", `signed ${nowMs - atMs} ms ago, over ${toleranceMs}`);
  if (!(atMs - nowMs <= toleranceMs)) return refused("too_new", `signed ${atMs - nowMs} ms in the future, over ${toleranceMs}`);

  // No early exit: which secret or which signature fits must not show in the time.
  const signatures = signaturesIn(given);
  const fits = keys.map((key) => anyEqual(signatures, signature(key, id, timestamp, body)));
  const secret = fits.indexOf(true);
  if (secret === -1) return refused("signature_wrong", "no signature fits: another secret, or a body with other bytes");
  return { ok: true, id, atMs, secret };
}

function refused(reason: WebhookRefusal, detail: string): VerifiedWebhook {
  return { ok: false, reason, detail };
}

/** An empty value counts as none. */
function valuesOf(headers: WebhookHeaders, name: string): string[] {
  const { get } = headers;
  const found =
    typeof get === "function"
      ? [get.call(headers, name)]
      : Object.entries(headers).flatMap(([key, value]) => (key.toLowerCase() === name ? value : []));
  return found.filter((value): value is string => typeof value === "string" && value !== "");
}

/** Of version 1, without it. A comma behind one comes from headers that were joined. */
function signaturesIn(text: string): Buffer[] {
  const entries = text.split(" ", SIGNATURES_MAX).map((entry) => entry.split(","));
  return entries.flatMap(([version, value]) => (version === "v1" && value ? [Buffer.from(value)] : []));
}

function anyEqual(given: readonly Buffer[], expected: string): boolean {
  const wanted = Buffer.from(expected);
  let equal = false;
  for (const one of given) if (one.length === wanted.length && timingSafeEqual(one, wanted)) equal = true;
  return equal;
}
