/**
 * Signatures of Standard Webhooks 1.0.0 (v1, HMAC-SHA256 over `id.timestamp.body`): making them, verifying them at the
 * receiver, and the secrets they need. What is signed is the exact bytes that are sent.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { MakegoodError } from "../message/errors.ts";
import { type Random, systemRandom } from "../platform/random.ts";

const PREFIX = "whsec_";
const SECRET_BYTES_MIN = 24;
const SECRET_BYTES_MAX = 64;
const SIGNATURES_MAX = 32;
const TOLERANCE_MS = 300_000;

/** A new secret of 32 random bytes. Show it once; it cannot be read back. */
export function generateSecret(random: Random = systemRandom): string {
  return PREFIX + Buffer.from(random.bytes(32)).toString("base64");
}

/** The reason why a secret cannot be used, or null. Never quotes the secret. */
export function checkSecret(secret: unknown): string | null {
  if (typeof secret !== "string" || !secret.startsWith(PREFIX)) return `a secret must start with ${PREFIX}`;
  const encoded = secret.slice(PREFIX.length);
  const key = Buffer.from(encoded, "base64");
  if (key.toString("base64").replace(/=+$/, "") !== encoded.replace(/=+$/, "")) return `a secret must be ${PREFIX} and base64`;
  if (key.length < SECRET_BYTES_MIN || key.length > SECRET_BYTES_MAX) {
    return `a secret must hold ${SECRET_BYTES_MIN} to ${SECRET_BYTES_MAX} bytes, not ${key.length}`;
  }
  return null;
}

/** The `webhook-signature` header: one signature for each secret, so that a receiver may know the old one or the new one. */
export function signWebhook(id: string, timestampS: number, body: string | Uint8Array, secrets: readonly string[]): string {
  // A dot inside an id would let `a.1` + `2` pass as `a` + `1.2`.
  if (id.includes(".")) throw new MakegoodError("invalid_message", `a webhook id must not contain a dot: ${id}`, { id });
  return secrets.map((secret) => `v1,${hmac(secret, id, String(timestampS), body).toString("base64")}`).join(" ");
}

export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * For receivers: true when `body` (the raw bytes, before any parsing) was signed with one of the secrets and the timestamp is no
 * further off than the tolerance, past or future. Takes the same time wherever a signature differs. Throws only when a secret is
 * malformed.
 */
export function verifyWebhook(
  headers: WebhookHeaders,
  body: string | Uint8Array,
  secrets: string | readonly string[],
  nowMs: number,
  toleranceMs: number = TOLERANCE_MS,
): boolean {
  const keys = typeof secrets === "string" ? [secrets] : secrets;
  const id = headerOf(headers, "webhook-id");
  const timestamp = headerOf(headers, "webhook-timestamp");
  const signatures = headerOf(headers, "webhook-signature");
  if (id === null || timestamp === null || signatures === null) return false;
  if (id === "" || id.includes(".") || !/^\d{1,12}$/.test(timestamp)) return false;
  // Written so that a NaN tolerance or clock refuses.
  if (!(Math.abs(nowMs - Number(timestamp) * 1_000) <= toleranceMs)) return false;

  const given = signatures.split(" ", SIGNATURES_MAX).filter((entry) => entry.startsWith("v1,"));
  let valid = false;
  for (const key of keys) {
    const expected = hmac(key, id, timestamp, body);
    for (const entry of given) {
      const actual = Buffer.from(entry.slice(3), "base64");
      // No early exit: which secret or which position matched must not show in the time.
      if (actual.length === expected.length && timingSafeEqual(actual, expected)) valid = true;
    }
  }
  return valid;
}

function hmac(secret: string, id: string, timestamp: string, body: string | Uint8Array): Buffer {
  const reason = checkSecret(secret);
  if (reason !== null) throw new MakegoodError("invalid_config", reason);
  return createHmac("sha256", Buffer.from(secret.slice(PREFIX.length), "base64"))
    .update(`${id}.${timestamp}.`)
    .update(body)
    .digest();
}

function headerOf(headers: WebhookHeaders, name: string): string | null {
  if (headers instanceof Headers) return headers.get(name);
  for (const [key, value] of Object.entries(headers)) {
    // Two values for one of these headers is one too many to trust.
    if (key.toLowerCase() === name) return typeof value === "string" ? value : null;
  }
  return null;
}
